// fuzz_replay ENTRY DIR: runs one fuzz entry without libFuzzer, over the files of a corpus folder,
// then over seeded mutations of them.
//
// Linked with every NAME_fuzz.cc by tests/fuzz/CMakeLists.txt, so that users of g++ and the
// sanitizers cover the decoders too. On a crash the offending input is left in ./ENTRY.crash.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

// The build compiles each NAME_fuzz.cc with LLVMFuzzerTestOneInput renamed to NAME_fuzz.
#define SHOAL_FUZZ_ENTRY(name) extern "C" int name(const uint8_t* data, size_t size);
#include "fuzz_entries.inc"
#undef SHOAL_FUZZ_ENTRY

namespace {

using Entry = int (*)(const uint8_t* data, size_t size);

// The entry of that name; null if there is none.
Entry FindEntry(std::string_view wanted) {
#define SHOAL_FUZZ_ENTRY(name) \
  if (wanted == #name) return name;
#include "fuzz_entries.inc"
#undef SHOAL_FUZZ_ENTRY
  return nullptr;
}

using Input = std::vector<uint8_t>;

constexpr int kMutations = 20'000;
constexpr size_t kLargestInput = 64 * 1024;

// What the entry is being run on, for the signal handler.
const Input* current = nullptr;
char crash_file[256];

void SaveAndDie(int signal) {
  if (const int fd = open(crash_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600); fd >= 0) {
    const ssize_t written = write(fd, current->data(), current->size());
    if (written >= 0) close(fd);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void RunOne(Entry entry, const Input& input) {
  current = &input;
  entry(input.data(), input.size());
}

// The regular files of `folder`, in the order of their names, so that runs repeat exactly.
std::vector<Input> ReadCorpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Input> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

// One of: flip a bit, overwrite with an extreme byte, cut the end, repeat a part, insert noise.
void MutateOnce(Input& input, std::mt19937_64& random) {
  if (input.empty()) input.push_back(static_cast<uint8_t>(random()));
  const size_t at = random() % input.size();
  const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random() % 5) {
    case 0:
      *place = static_cast<uint8_t>(*place ^ (1u << (random() % 8)));
      break;
    case 1: {
      constexpr uint8_t kExtremes[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '\n', '{', '"'};
      *place = kExtremes[random() % std::size(kExtremes)];
      break;
    }
    case 2:
      input.resize(at);
      break;
    case 3: {
      const size_t length = std::min<size_t>(1 + random() % 32, input.size() - at);
      const Input part(place, place + static_cast<std::ptrdiff_t>(length));
      input.insert(place, part.begin(), part.end());
      break;
    }
    default:
      for (size_t i = 1 + random() % 8; i > 0; --i) {
        input.insert(input.begin() + static_cast<std::ptrdiff_t>(at),
                     static_cast<uint8_t>(random()));
      }
  }
  if (input.size() > kLargestInput) input.resize(kLargestInput);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(
        stderr,
        "usage: fuzz_replay ENTRY DIR, such as fuzz_replay csv_fuzz tests/fuzz/corpus/csv_fuzz\n");
    return 2;
  }
  const std::string name = argv[1];
  const Entry entry = FindEntry(name);
  if (entry == nullptr) {
    std::fprintf(
        stderr,
        "fuzz_replay: no entry '%s'; each tests/fuzz/NAME_fuzz.cc is one, called NAME_fuzz\n",
        name.c_str());
    return 2;
  }
  std::snprintf(crash_file, sizeof crash_file, "%.200s.crash", name.c_str());
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
    std::signal(signal, SaveAndDie);
  }

  std::vector<Input> corpus = ReadCorpus(argv[2]);
  const size_t files = corpus.size();
  if (files == 0) {
    std::fprintf(stderr, "%s: no corpus in %s; give it at least one valid input\n", name.c_str(),
                 argv[2]);
    return 1;
  }
  corpus.emplace_back();
  for (const Input& input : corpus) RunOne(entry, input);

  std::mt19937_64 random(20231);
  for (int i = 0; i < kMutations; ++i) {
    Input input = corpus[random() % corpus.size()];
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) MutateOnce(input, random);
    RunOne(entry, input);
  }
  std::printf("%s: %zu inputs, %d mutations\n", name.c_str(), files, kMutations);
  return 0;
}
