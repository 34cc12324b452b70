// Runs the command itself: argument 1 of this test is its path.

#include <executorch/extension/module/example_program.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

std::string runner;

struct Outcome {
  int code;
  std::string output;
};

class ExecutorRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write("add.pte", executorch::extension::testing::ExampleProgram::bytes());
  }

  static std::string file(const std::string& name) {
    return ::testing::TempDir() + "executor_runner_test_" + name;
  }

  static void write(const std::string& name, const std::string& bytes) {
    std::ofstream(file(name), std::ios::binary) << bytes;
  }

  static void write_floats(const std::string& name, const std::vector<float>& numbers) {
    write(name, std::string(reinterpret_cast<const char*>(numbers.data()), 4 * numbers.size()));
  }

  /// Runs with these arguments; both streams together.
  static Outcome run(const std::string& arguments, const std::string& input = "/dev/null") {
    FILE* const pipe = popen((runner + " " + arguments + " 2>&1 <" + input).c_str(), "r");
    Outcome outcome{-1, ""};
    std::array<char, 4096> chunk;
    for (size_t n; (n = fread(chunk.data(), 1, chunk.size(), pipe)) != 0;) {
      outcome.output.append(chunk.data(), n);
    }
    outcome.code = WEXITSTATUS(pclose(pipe));
    return outcome;
  }

  static Outcome run_model(const std::string& arguments) {
    return run("--model_path=" + file("add.pte") + " " + arguments);
  }

  static std::string content(const std::string& name) {
    std::ifstream in(file(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

  static bool contains(const Outcome& outcome, const std::string& text) {
    return outcome.output.find(text) != std::string::npos;
  }
};

#define EXPECT_FAILS(outcome, expected_code, text)          \
  do {                                                      \
    const Outcome failed = outcome;                         \
    EXPECT_EQ(failed.code, expected_code) << failed.output; \
    EXPECT_TRUE(contains(failed, text)) << failed.output;   \
  } while (0)

TEST_F(ExecutorRunnerTest, HelpHasAnExample) {
  const auto outcome = run("--help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(contains(outcome, "executor_runner --model_path=model.pte"));
}

TEST_F(ExecutorRunnerTest, RunsTheFirstMethodOnOnes) {
  const auto outcome = run_model("--print_output=all");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(contains(outcome, "OutputX 0: tensor(sizes=[2, 2], [2., 2., 2., 2.])"))
      << outcome.output;
}

TEST_F(ExecutorRunnerTest, ReadsRawInputsAndWritesRawOutputs) {
  write_floats("x.bin", {1, 2, 3, 4});
  write_floats("y.bin", {10, 20, 30, 40});
  const auto outcome =
      run_model("--inputs=" + file("x.bin") + "," + file("y.bin") +
                " --print_output=none --num_executions=3 --output_file=" + file("out"));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_FALSE(contains(outcome, "OutputX"));
  std::ifstream out(file("out-0.bin"), std::ios::binary);
  std::array<float, 4> sum{};
  out.read(reinterpret_cast<char*>(sum.data()), sizeof(sum));
  EXPECT_EQ(sum, (std::array<float, 4>{11, 22, 33, 44}));
}

TEST_F(ExecutorRunnerTest, ReportsAsJson) {
  const auto outcome = run_model("--json --print_output=all --method_name=twice");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(contains(outcome, "\"data\":[2.0,2.0,2.0,2.0]")) << outcome.output;
  EXPECT_TRUE(contains(outcome, "\"method\":\"twice\""));
}

TEST_F(ExecutorRunnerTest, ServerModeRunsOncePerLine) {
  write("lines", "a\nb\n");
  const auto outcome = run("--server_mode=true --model_path=" + file("add.pte"), file("lines"));
  EXPECT_EQ(outcome.code, 0);
  const size_t first = outcome.output.find("OutputX 0");
  const size_t second = outcome.output.find("OutputX 0", first + 1);
  EXPECT_NE(second, std::string::npos);
  EXPECT_EQ(outcome.output.find("OutputX 0", second + 1), std::string::npos);
}

TEST_F(ExecutorRunnerTest, MissingAndBrokenFilesEndWithTheirCause) {
  EXPECT_FAILS(run("--model_path=/no/such.pte"), 1, "/no/such.pte");
  const std::string whole = executorch::extension::testing::ExampleProgram::bytes();
  write("short.pte", whole.substr(0, whole.size() / 2));
  EXPECT_FAILS(run("--model_path=" + file("short.pte")), 1, file("short.pte"));
  EXPECT_FAILS(run_model("--data_path=/no/such.ptd"), 1, "/no/such.ptd");
  EXPECT_FAILS(run_model("--inputs=/no/x.bin,/no/y.bin"), 1, "/no/x.bin");
  EXPECT_FAILS(run_model("--output_file=/no/such/out"), 1, "/no/such/out-0.bin");
}

TEST_F(ExecutorRunnerTest, WrongInputsEndWithTheirCause) {
  write_floats("x.bin", {1, 2, 3, 4});
  write_floats("long.bin", {1, 2, 3, 4, 5});
  EXPECT_FAILS(run_model("--inputs=" + file("x.bin") + "," + file("long.bin")), 1,
               "has 20 bytes, input 1 of the method 16");
  EXPECT_FAILS(run_model("--inputs=" + file("x.bin")), 1, "1 input files for 2 tensor inputs");
}

TEST_F(ExecutorRunnerTest, UnknownMethodsAreListedBesideTheKnownOnes) {
  const auto outcome = run_model("--method_name=backward");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome, "no method 'backward'"));
  EXPECT_TRUE(contains(outcome, "twice"));
}

TEST_F(ExecutorRunnerTest, WrongCommandLinesEndWithCode2) {
  EXPECT_FAILS(run("--no_such_flag"), 2, "no_such_flag");
  EXPECT_FAILS(run_model("--print_output=some"), 2, "print_output");
  EXPECT_FAILS(run_model("--num_executions=0"), 2, "num_executions");
  EXPECT_FAILS(run_model("--cpu_threads=-2"), 2, "cpu_threads");
}

TEST_F(ExecutorRunnerTest, WritesAnETDumpAndTheBytesOfValues) {
  const auto outcome =
      run_model("--etdump_path=" + file("run.etdp") +
                " --dump_intermediate_outputs --debug_output_path=" + file("run.bin"));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  const std::string dump = content("run.etdp");
  EXPECT_EQ(dump.substr(8, 4), "ED00");
  EXPECT_NE(dump.find("native_call_add.out"), std::string::npos);
  EXPECT_EQ(content("run.bin").size(), 16u + 16);  // of the instruction and of the method
  EXPECT_FAILS(run_model("--dump_outputs"), 2, "--etdump_path");
  EXPECT_FAILS(run_model("--etdump_path=/no/such/file"), 1, "/no/such/file");
}

TEST_F(ExecutorRunnerTest, RecordsNoMoreValuesThanAskedFor) {
  const std::string record = "--etdump_path=" + file("run.etdp") +
                             " --dump_intermediate_outputs --debug_output_path=" + file("run.bin");
  const auto enough = run_model(record + " --debug_buffer_size=80");
  EXPECT_EQ(enough.code, 0) << enough.output;
  EXPECT_FALSE(contains(enough, "is not complete")) << enough.output;
  EXPECT_EQ(content("run.bin").size(), 64u + 16);
  const auto too_little = run_model(record + " --debug_buffer_size=64");
  EXPECT_EQ(too_little.code, 0) << too_little.output;
  EXPECT_TRUE(contains(too_little, "run.etdp is not complete")) << too_little.output;
  EXPECT_EQ(content("run.bin").size(), 16u);
  EXPECT_FAILS(run_model(record + " --debug_buffer_size=18446744073709551615"), 1, "no memory");
}

TEST_F(ExecutorRunnerTest, TakesTheSpellingsOfGflags) {
  const auto outcome =
      run("-model_path=/no/such.pte --model_path=" + file("add.pte") +
          " --data_path= -inputs= --output_file= --method_name= -cpu_threads -1 -json");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(contains(outcome, "\"method\":\"forward\"")) << outcome.output;
}

TEST_F(ExecutorRunnerTest, ResultsDoNotReplaceWhatIsRead) {
  const std::string before = content("add.pte");
  EXPECT_FAILS(run_model("--profile=" + file("add.pte")), 2, "add.pte is read");
  EXPECT_FAILS(run_model("--profile=" + file("p") + " --trace=" + file("p")), 2, "two results");
  EXPECT_FAILS(run_model("--etdump_path=" + file("add.pte")), 2, "add.pte is read");
  EXPECT_FAILS(run_model("--dump_outputs --etdump_path=" + file("e") +
                         " --debug_output_path=" + file("add.pte")),
               2, "add.pte is read");
  EXPECT_EQ(content("add.pte"), before);
}

TEST_F(ExecutorRunnerTest, ProgramsThatCannotBeLoadedLeaveNoRecord) {
  write("short.pte", "too short");
  const std::string values = file("values.bin");
  EXPECT_FAILS(run("--model_path=" + file("short.pte") + " --dump_outputs --etdump_path=" +
                   file("none.etdp") + " --debug_output_path=" + values),
               1, "short.pte");
  EXPECT_FALSE(std::ifstream(values).is_open());
}

TEST_F(ExecutorRunnerTest, ProfilesExcludeOptionsThatTheyWouldIgnore) {
  for (const char* other : {"--output_file=y", "--etdump_path=e", "--print_fusion"}) {
    EXPECT_FAILS(run_model(std::string("--profile ") + other), 2, "excludes");
  }
}

TEST_F(ExecutorRunnerTest, BundlesExcludeOptionsThatTheyWouldIgnore) {
  for (const char* other : {"--inputs=x.bin", "--profile", "--trace=t", "--server_mode"}) {
    EXPECT_FAILS(run_model(std::string("--bundled ") + other), 2, "excludes --bundled");
    EXPECT_FAILS(run(std::string("--bundled_program=x ") + other), 2, "excludes --bundled_program");
  }
  for (const char* tolerance : {"nan", "-1", "x"}) {
    EXPECT_FAILS(run_model(std::string("--bundled --bundleio_atol=") + tolerance), 2, tolerance);
  }
}

TEST_F(ExecutorRunnerTest, OtherFilesAreNoBundles) {
  EXPECT_FAILS(run_model("--bundled"), 1, "add.pte: Error::NotSupported");
  EXPECT_FAILS(run("--bundled_program=/no/such.bpte"), 1, "/no/such.bpte");
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 2) {
    std::fprintf(stderr, "usage: executor_runner_test PATH_OF_EXECUTOR_RUNNER\n");
    return 2;
  }
  runner = argv[1];
  return RUN_ALL_TESTS();
}
