"""The lint finds what it should: each rule once broken in a small tree, and a clean tree that it leaves alone."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ.get("SHOAL_SOURCE") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LINT = os.path.join(SOURCE, "tools", "lint")
sys.path.insert(0, LINT)
import cpp  # noqa: E402

CLEAN = {
    "src/base/CMakeLists.txt": "shoal_room(base LIBS fmt::fmt)\n",
    "src/base/a.h": "#pragma once\nint A(int x);\n",
    "src/base/a.cc": '#include "base/a.h"\n\n#include <vector>\n\nint A(int x) { return x; }\n',
    "src/net/CMakeLists.txt": "shoal_room(net DEPS base)\n",
    "src/net/b.cc": '#include "base/a.h"\n\nint B() { return A(1); }\n',
}


class Tree(unittest.TestCase):
    def lint(self, changes):
        """(exit code, output) of the lint over the clean tree with some files replaced."""
        with tempfile.TemporaryDirectory() as root:
            shutil.copytree(LINT, os.path.join(root, "tools", "lint"), ignore=shutil.ignore_patterns("__pycache__"))
            with open(os.path.join(root, "tools", "lint", "waivers.txt"), "w", encoding="utf-8"):
                pass
            for path, text in {**CLEAN, **changes}.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            done = subprocess.run([sys.executable, "-B", os.path.join(LINT, "lint.py"), "--root", root, "--no-format"],
                                  stdout=subprocess.PIPE, text=True, check=False)
            return done.returncode, done.stdout

    def assert_found(self, rule, changes):
        code, out = self.lint(changes)
        self.assertEqual(code, 1, out)
        self.assertIn(f" {rule}: ", out)

    def test_clean_tree_passes(self):
        code, out = self.lint({})
        self.assertEqual(code, 0, out)

    def test_include_of_a_later_room(self):
        self.assert_found("rooms", {"src/base/c.cc": '#include "net/b.h"\n'})

    def test_room_that_deps_does_not_name(self):
        self.assert_found("deps", {"src/net/CMakeLists.txt": "shoal_room(net)\n"})

    def test_deps_that_nothing_uses(self):
        self.assert_found("deps", {"src/net/b.cc": "int B() { return 1; }\n"})

    def test_foreign_header_in_the_wrong_room(self):
        self.assert_found("owner", {"src/net/b.cc": '#include "base/a.h"\n#include <sqlite3.h>\n'})

    def test_foreign_header_in_a_header(self):
        self.assert_found("owner", {"src/net/b.h": "#pragma once\n#include <boost/asio.hpp>\n"})

    def test_header_not_first(self):
        self.assert_found("own-header", {"src/base/a.cc": '#include <vector>\n#include "base/a.h"\n'})

    def test_long_function(self):
        body = "  x();\n" * 70
        self.assert_found("function-lines", {"src/net/b.cc": '#include "base/a.h"\nint B() {\n' + body + "}\n"})

    def test_waiver_and_its_end(self):
        long = {"src/net/b.cc": '#include "base/a.h"\nint B() {\n' + "  x();\n" * 70 + "}\n"}
        waiver = {"tools/lint/waivers.txt": "function-lines src/net/b.cc:B a table that reads best in one piece\n"}
        code, out = self.lint({**long, **waiver})
        self.assertEqual(code, 0, out)
        self.assert_found("waiver", waiver)

    def test_long_files(self):
        self.assert_found("file-lines", {"src/net/b.h": "#pragma once\n" + "int x;\n" * 301})
        self.assert_found("file-lines", {"src/net/b.cc": '#include "base/a.h"\n' + "int x;\n" * 601})

    def test_many_parameters(self):
        self.assert_found("parameters", {"src/base/c.cc": "int F(int a, int b, int c, int d, int e, int f, int g) {\n}\n"})

    def test_deep_nesting(self):
        self.assert_found("nesting", {"src/base/c.cc": "int F() {\n" + "if (a) {\n" * 5 + "}\n" * 5 + "}\n"})

    def test_empty_name(self):
        self.assert_found("file-name", {"src/base/util.h": "#pragma once\n"})

    def test_sleeping_test(self):
        self.assert_found("sleep", {"src/base/c_test.cc": "void F() { usl" + "eep(3); }\n"})

    def test_ignored_output(self):
        self.assert_found("ignored-output", {"src/base/c.cc": "void F() { (void)PrintOut(text); }\n"})
        self.assert_found("ignored-output", {"src/base/c.cc": "void F() { (void)WriteAll(STDOUT_FILENO, text); }\n"})

    def test_unchecked_mutex(self):
        self.assert_found("locks", {"src/base/c.cc": "std::mutex mu;\n"})
        self.assert_found("locks", {"src/base/c.cc": "std::condition_variable changed;\n"})
        self.assertEqual(self.lint({"src/base/c.cc": "std::mutex mu;  // not checked: of one thread\n"})[0], 0)

    def test_annotations_of_locks_are_no_methods(self):
        fields = "".join(f"  int f{i}_ GUARDED_BY(mu_) = 0;\n" for i in range(41))
        code, out = self.lint({"src/base/c.h": "#pragma once\nclass C {\n" + fields + "};\n"})
        self.assertEqual(code, 1, out)
        self.assertIn("class-fields", out)
        self.assertNotIn("class-methods", out)

    def test_machine_path(self):
        self.assert_found("machine-path", {"docs/x.md": "see /ho" + "me/carla/x\n"})


class Functions(unittest.TestCase):
    def names(self, text):
        return [(f.name, f.first, f.last, f.parameters) for f in cpp.functions(text)]

    def test_constructors_with_braces(self):
        self.assertEqual(self.names("A::A(int x, std::map<int, int> y)\n    : x_{x}, y_(y) {\n  int z{1};\n}\nint B() { return 1; }\n"),
                         [("A::A", 1, 4, 2), ("B", 5, 5, 0)])

    def test_literals_do_not_count(self):
        self.assertEqual(self.names("int A() {\n  // }\n  char c = '}'; auto s = R\"x(}})x\"; int n = 1'000;\n}\n"),
                         [("A", 1, 4, 0)])

    def test_methods_templates_and_lambdas(self):
        text = ("namespace a {\nclass B {\n public:\n  template <typename T>\n  T C(T t) const {\n    Run([&] { t(); });\n"
                "    return t;\n  }\n  bool operator==(const B& b) const { return true; }\n};\n}\n")
        self.assertEqual([n[0] for n in self.names(text)], ["C", "operator=="])

    def test_initialised_tables_are_no_functions(self):
        self.assertEqual(self.names("constexpr int kA[] = {1, 2};\nenum class E : int { kX };\nstruct S { int a = 0; };\n"), [])


if __name__ == "__main__":
    unittest.main()
