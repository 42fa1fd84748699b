"""The library as a user gets it: `cmake --install` to an empty directory, an application outside of the tree that finds
it with find_package(shoal), two servers and three workers in it."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.dirname(os.path.abspath(os.environ["SHOAL_BIN"]))


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        print(done.stdout[-4000:])
        sys.exit(f"install_test: {' '.join(command)} ended with {done.returncode}")
    return done.stdout


SAMPLE = """cmake_minimum_required(VERSION 3.20)
project(sample LANGUAGES CXX)
find_package(shoal REQUIRED)
add_compile_options(-Wall -Wextra -Wpedantic -Werror)
add_executable(sample sample.cc)
target_link_libraries(sample PRIVATE shoal::ps)
"""


def check_sample(root, prefix):
    """The program of docs/ps.md is one."""
    with open(os.path.join(os.environ["SHOAL_SOURCE"], "docs", "ps.md"), encoding="utf-8") as f:
        source = f.read().split("```cpp\n")[1].split("```")[0]
    place = os.path.join(root, "sample")
    os.mkdir(place)
    for name, text in (("CMakeLists.txt", SAMPLE), ("sample.cc", source)):
        with open(os.path.join(place, name), "w", encoding="utf-8") as f:
            f.write(text)
    run("cmake", "-S", place, "-B", os.path.join(place, "build"), f"-DCMAKE_PREFIX_PATH={prefix}", "-G", "Ninja")
    run("cmake", "--build", os.path.join(place, "build"))
    assert run(os.path.join(place, "build", "sample")) == "-0.5\n"


def main():
    if not os.path.exists(os.path.join(BUILD, "src", "door", "libshoal_ps.so")):
        print("skipped: the library has not been built here")
        sys.exit(77)
    if "sanitize" in run("cmake", "-LA", "-N", BUILD) and "SHOAL_SANITIZE:STRING=\n" not in run("cmake", "-LA", "-N", BUILD):
        print("skipped: an application without the sanitizer cannot load a sanitized library")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="shoal-door-") as root:
        prefix, build = os.path.join(root, "prefix"), os.path.join(root, "build")
        run("cmake", "--install", BUILD, "--prefix", prefix)
        run("cmake", "-S", os.path.join(HERE, "app"), "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
            "-DCMAKE_BUILD_TYPE=Debug", "-G", "Ninja")
        run("cmake", "--build", build)
        said = run(os.path.join(build, "app"), os.path.join(root, "checkpoints"), timeout=120)
        assert "door: all is as it should be" in said, said
        check_sample(root, prefix)
        shown = run("nm", "-DC", "--defined-only", os.path.join(prefix, "lib", "libshoal_ps.so"))
        strangers = [line for line in shown.splitlines() if " shoal::ps::v1::" not in line
                     and "for shoal::ps::v1::" not in line and " ps::" not in line]
        assert not strangers, strangers[:5]
        assert os.access(os.path.join(prefix, "bin", "shoal"), os.X_OK)
    print("install_test: ok")


if __name__ == "__main__":
    main()
