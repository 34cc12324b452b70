/* The C interface as C99:
 *   c_api_test [linear.pte [text.pte tokenizer.bin [handed_on.pte [loop.pte]]]]
 *   c_api_test outputs PROGRAM... | repeated PROGRAM... | short FILE...
 *   none        what needs no program: every function refuses NULL, and files that are none
 *   linear.pte  Linear(3, 2) on float [1, 3]; prints its outputs for {1, 2, 3}
 *   text.pte    a language model; prints 8 tokens after "hello"
 *   handed_on.pte  gives its input, float [at most 4], which it does not copy
 *   loop.pte    adds 1 to each of 50 rows, float [50, 4], in a loop; has None and a text for inputs
 *   outputs     programs on two float [at most 4], whose outputs stay while inputs are set; prints
 *               those of each for {1, 2, 3, 4} and {5, 6, 7, 8}
 *   repeated    programs on float [4], which give the same each time; prints it for {1, 2, 3, 4}
 *   short       files that are too short for a program */
#include <executorch/extension/c_api/executorch.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition)                                                            \
  do {                                                                               \
    if (!(condition)) {                                                              \
      printf("%d: not so: %s; %s\n", __LINE__, #condition, executorch_last_error()); \
      ++failures;                                                                    \
    }                                                                                \
  } while (0)

/* Fails, with a text that has the function's name and `words`. */
#define EXPECT_ERROR(status, call, words)                                      \
  do {                                                                         \
    EXPECT((call) == (status));                                                \
    EXPECT(strstr(executorch_last_error(), words) != NULL);                    \
    EXPECT(strncmp(executorch_last_error(), #call, strcspn(#call, "(")) == 0); \
  } while (0)

#define EXPECT_REFUSED(call, words) EXPECT_ERROR(EXECUTORCH_INVALID_ARGUMENT, call, words)

static void count_messages(char level, const char* message, void* user) {
  if (level == 'E' && message[0] != 0) ++*(int*)user;
}

static void test_null_is_refused(void) {
  executorch_value value;
  size_t n;
  EXPECT(strcmp(executorch_last_error(), "") == 0);
  EXPECT(executorch_version()[0] != 0);
  EXPECT_REFUSED(executorch_program_load(NULL, NULL), "NULL");
  EXPECT_REFUSED(executorch_program_load("x", NULL), "NULL");
  EXPECT_REFUSED(executorch_program_load_memory(NULL, 5, 0, NULL), "NULL");
  EXPECT_REFUSED(executorch_program_method_count(NULL, &n), "NULL");
  EXPECT_REFUSED(executorch_program_method_name(NULL, 0, NULL), "NULL");
  EXPECT_REFUSED(executorch_method_load(NULL, NULL, NULL), "NULL");
  EXPECT_REFUSED(executorch_method_input_count(NULL, &n), "NULL");
  EXPECT_REFUSED(executorch_method_output_count(NULL, &n), "NULL");
  EXPECT_REFUSED(executorch_method_input_info(NULL, 0, &value), "NULL");
  EXPECT_REFUSED(executorch_method_input_name(NULL, 0, NULL), "NULL");
  EXPECT_REFUSED(executorch_method_output_name(NULL, 0, NULL), "NULL");
  EXPECT_REFUSED(executorch_method_output_info(NULL, 0, &value), "NULL");
  EXPECT_REFUSED(executorch_method_set_tensor(NULL, 0, EXECUTORCH_FLOAT, 0, NULL, NULL, 0), "NULL");
  EXPECT_REFUSED(executorch_method_set_int(NULL, 0, 0), "NULL");
  EXPECT_REFUSED(executorch_method_set_double(NULL, 0, 0), "NULL");
  EXPECT_REFUSED(executorch_method_set_bool(NULL, 0, 0), "NULL");
  EXPECT_REFUSED(executorch_method_set_max_work(NULL, 1), "NULL");
  EXPECT_REFUSED(executorch_method_run(NULL), "NULL");
  EXPECT_REFUSED(executorch_method_output(NULL, 0, &value), "NULL");
  EXPECT_REFUSED(executorch_text_load(NULL, NULL, NULL), "NULL");
  EXPECT_REFUSED(executorch_text_options_init(NULL), "NULL");
  EXPECT_REFUSED(executorch_text_generate(NULL, NULL, NULL, NULL, NULL, NULL), "NULL");
  EXPECT_REFUSED(executorch_text_stop(NULL), "NULL");
  EXPECT_REFUSED(executorch_set_threads(0), "expected 1 to 1024");
  executorch_program_free(NULL);
  executorch_method_free(NULL);
  executorch_text_free(NULL);
}

static void test_files_that_are_none(void) {
  executorch_program* program = NULL;
  executorch_text* text = NULL;
  char zeros[100] = {0};
  int messages = 0;
  executorch_set_log(count_messages, &messages);
  EXPECT_ERROR(EXECUTORCH_ACCESS_FAILED, executorch_program_load("no/such.pte", &program),
               "no/such.pte");
  EXPECT(messages > 0);
  executorch_set_log(NULL, NULL);
  EXPECT(executorch_program_load_memory(zeros, 0, 0, &program) != EXECUTORCH_OK);
  EXPECT_ERROR(EXECUTORCH_INVALID_PROGRAM,
               executorch_program_load_memory(zeros, sizeof zeros, 0, &program),
               "(InvalidProgram)");
  EXPECT_ERROR(EXECUTORCH_OUT_OF_MEMORY,
               executorch_program_load_memory(zeros, (size_t)-1, 0, &program), "out of memory");
  EXPECT(executorch_text_load("no/such.pte", NULL, &text) != EXECUTORCH_OK);
  EXPECT(program == NULL && text == NULL);
}

static void* contents(const char* path, size_t* n) {
  FILE* file = fopen(path, "rb");
  void* bytes = malloc(1 << 20);
  *n = file == NULL ? 0 : fread(bytes, 1, 1 << 20, file);
  if (file != NULL) fclose(file);
  return bytes;
}

/* The program, from its file and from memory that is gone. */
static void load_linear(const char* path, executorch_program** program, executorch_program** copy) {
  executorch_program* damaged = NULL;
  size_t n = 0;
  unsigned char* bytes = contents(path, &n);
  EXPECT(executorch_program_load(path, program) == EXECUTORCH_OK);
  EXPECT(executorch_program_load_memory(bytes, n, 0, copy) == EXECUTORCH_OK);
  EXPECT_REFUSED(executorch_program_load_memory(bytes + 1, n - 1, 1, &damaged), "multiple of 16");
  EXPECT(executorch_program_load_memory(bytes, n / 2, 0, &damaged) != EXECUTORCH_OK);
  memset(bytes, 0x7f, n);
  free(bytes);
}

static void test_methods(executorch_program* program, executorch_method** method) {
  const char* name = NULL;
  size_t n = 0;
  EXPECT(executorch_program_method_count(program, &n) == EXECUTORCH_OK && n == 1);
  EXPECT(executorch_program_method_name(program, 0, &name) == EXECUTORCH_OK);
  EXPECT(name != NULL && strcmp(name, "forward") == 0);
  EXPECT_REFUSED(executorch_program_method_name(program, 1, &name), "method 1 of 1");
  EXPECT_ERROR(EXECUTORCH_NOT_FOUND, executorch_method_load(program, "backward", method),
               "backward");
  EXPECT(executorch_method_load(program, "forward", method) == EXECUTORCH_OK);
}

static const int64_t kSizes[] = {1, 3};
static const float kInput[] = {1, 2, 3};

static void test_infos(executorch_method* method) {
  executorch_value value;
  size_t n = 0;
  EXPECT(executorch_method_input_count(method, &n) == EXECUTORCH_OK && n == 1);
  EXPECT(executorch_method_output_count(method, &n) == EXECUTORCH_OK && n == 1);
  EXPECT(executorch_method_input_info(method, 0, &value) == EXECUTORCH_OK);
  EXPECT(value.kind == EXECUTORCH_KIND_TENSOR && value.dtype == EXECUTORCH_FLOAT &&
         value.rank == 2);
  EXPECT(value.sizes[0] == 1 && value.sizes[1] == 3 && value.dim_order[1] == 1);
  EXPECT(value.data == NULL && value.n_bytes == sizeof kInput && value.is_dynamic == 0);
  EXPECT(executorch_method_output_info(method, 0, &value) == EXECUTORCH_OK && value.sizes[1] == 2);
  const char* name = NULL;
  EXPECT(executorch_method_input_name(method, 0, &name) == EXECUTORCH_OK &&
         strcmp(name, "input") == 0);
  EXPECT(executorch_method_output_name(method, 0, &name) == EXECUTORCH_OK && strcmp(name, "") == 0);
  EXPECT_REFUSED(executorch_method_input_name(method, 7, &name), "input 7 of 1");
  EXPECT_REFUSED(executorch_method_output_name(method, 7, &name), "output 7 of 1");
  EXPECT_REFUSED(executorch_method_input_info(method, 7, &value), "input 7 of 1");
  EXPECT_REFUSED(executorch_method_output_info(method, 7, &value), "output 7 of 1");
}

static void test_wrong_inputs(executorch_method* method) {
  static const int64_t wide[] = {1, 4}, negative[] = {1, -3}, huge[] = {1LL << 31, 1LL << 31};
  const int64_t* const sizes = kSizes;
  const float* const x = kInput;
  const size_t n = sizeof kInput;
  executorch_value value;
  EXPECT_ERROR(EXECUTORCH_INVALID_STATE, executorch_method_run(method),
               "input 0 (input) of 1 was never set");
  EXPECT_ERROR(EXECUTORCH_INVALID_STATE, executorch_method_output(method, 0, &value),
               "has not run");
  EXPECT_REFUSED(executorch_method_set_tensor(method, 1, EXECUTORCH_FLOAT, 2, sizes, x, n),
                 "input 1 of 1");
  EXPECT_REFUSED(executorch_method_set_tensor(method, 0, 99, 2, sizes, x, n), "no element type");
  EXPECT_REFUSED(executorch_method_set_tensor(method, 0, -1, 2, sizes, x, n), "no element type");
  EXPECT_REFUSED(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 17, sizes, x, n),
                 "rank 17");
  EXPECT_REFUSED(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 2, negative, x, n),
                 "size -3");
  EXPECT_REFUSED(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 2, huge, x, n),
                 "size 2147483648");
  EXPECT_REFUSED(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 2, sizes, x, 8),
                 "8 bytes, its type and sizes need 12");
  EXPECT_REFUSED(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 2, NULL, x, 8), "sizes");
  EXPECT_REFUSED(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 2, sizes, NULL, 12),
                 "data");
  EXPECT_REFUSED(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 1, sizes + 1, x, n),
                 "rank 1, expected 2");
  EXPECT(executorch_method_set_tensor(method, 0, EXECUTORCH_INT32, 2, sizes, x, n) != 0);
  EXPECT(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 2, wide, x, 16) != 0);
  EXPECT(executorch_method_set_int(method, 0, 3) != EXECUTORCH_OK);
  EXPECT(executorch_method_set_bool(method, 9, 1) != EXECUTORCH_OK);
}

static void run_linear(executorch_method* method) {
  EXPECT(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 2, kSizes, kInput,
                                      sizeof kInput) == 0);
  EXPECT(executorch_set_threads(2) == EXECUTORCH_OK);
  EXPECT(executorch_method_run(method) == EXECUTORCH_OK);
}

static void test_linear(const char* path) {
  executorch_program *program = NULL, *copy = NULL;
  executorch_method *method = NULL, *other = NULL;
  executorch_value value, again;
  load_linear(path, &program, &copy);
  if (program == NULL || copy == NULL) return;
  test_methods(program, &method);
  test_methods(copy, &other);
  if (method == NULL || other == NULL) return;
  executorch_program_free(program); /* methods keep what they need */
  executorch_program_free(copy);
  test_infos(method);
  test_wrong_inputs(method);
  run_linear(method);
  run_linear(other);
  EXPECT(executorch_method_output(method, 0, &value) == EXECUTORCH_OK);
  EXPECT(executorch_method_output(other, 0, &again) == EXECUTORCH_OK);
  EXPECT_REFUSED(executorch_method_output(method, 1, &value), "output 1 of 1");
  EXPECT(value.rank == 2 && value.sizes[1] == 2 && value.n_bytes == 8 && again.n_bytes == 8);
  EXPECT(value.data != again.data && memcmp(value.data, again.data, 8) == 0);
  printf("%.6f %.6f\n", ((const float*)value.data)[0], ((const float*)value.data)[1]);
  executorch_method_free(method);
  executorch_method_free(other);
}

/* What a run gave stays as it was, whatever inputs are set for the next. */
static void test_handed_on(const char* path) {
  static const int64_t sizes[] = {4, 2, 3, 4};
  static const float x[] = {1, 2, 3, 4}, other[] = {5, 6, 7, 8};
  executorch_program* program = NULL;
  executorch_method* method = NULL;
  executorch_value before, after;
  int i;
  EXPECT(executorch_program_load(path, &program) == EXECUTORCH_OK);
  EXPECT(executorch_method_load(program, "forward", &method) == EXECUTORCH_OK);
  EXPECT(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 1, sizes, x, sizeof x) == 0);
  EXPECT(executorch_method_run(method) == EXECUTORCH_OK);
  EXPECT(executorch_method_output(method, 0, &before) == EXECUTORCH_OK);
  for (i = 1; i < 4; ++i) {
    EXPECT(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 1, sizes + i, other,
                                        (size_t)sizes[i] * sizeof(float)) == 0);
    EXPECT(executorch_method_output(method, 0, &after) == EXECUTORCH_OK);
    EXPECT(after.data == before.data && after.sizes[0] == 4 && after.n_bytes == sizeof x);
    EXPECT(memcmp(before.data, x, sizeof x) == 0);
  }
  EXPECT(executorch_method_run(method) == EXECUTORCH_OK);
  EXPECT(executorch_method_output(method, 0, &after) == EXECUTORCH_OK);
  EXPECT(after.n_bytes == sizeof other && memcmp(after.data, other, sizeof other) == 0);
  executorch_method_free(method);
  executorch_program_free(program);
}

struct seen {
  char text[256];
  int pieces, most;
};

static int see(const char* text, size_t n, void* user) {
  struct seen* seen = user;
  EXPECT(strlen(text) == n);
  strncat(seen->text, text, sizeof seen->text - strlen(seen->text) - 1);
  return ++seen->pieces >= seen->most;
}

static void test_text(const char* model, const char* tokenizer) {
  executorch_text* text = NULL;
  executorch_text_options options;
  executorch_text_result result;
  struct seen all = {"", 0, 1000}, one = {"", 0, 1};
  EXPECT(executorch_text_load(model, NULL, &text) != EXECUTORCH_OK);
  EXPECT(executorch_text_load(model, "no/such", &text) != EXECUTORCH_OK);
  EXPECT(executorch_text_load(model, tokenizer, &text) == EXECUTORCH_OK);
  if (text == NULL) return;
  memset(&options, 0, sizeof options);
  EXPECT_REFUSED(executorch_text_generate(text, "hello", &options, NULL, NULL, NULL),
                 "struct_size");
  EXPECT(executorch_text_options_init(&options) == EXECUTORCH_OK && options.max_new_tokens == -1);
  options.top_p = 7;
  EXPECT_REFUSED(executorch_text_generate(text, "hello", &options, NULL, NULL, NULL), "top_p");
  options.top_p = 1;
  options.temperature = 0;
  options.max_new_tokens = 8;
  EXPECT(executorch_text_generate(text, "hello", &options, see, &all, &result) == EXECUTORCH_OK);
  EXPECT(result.n_new_tokens == 8 && result.n_prompt_tokens > 0 && result.decode_seconds > 0);
  EXPECT(strcmp(result.finish_reason, "length") == 0);
  EXPECT(strcmp(result.text, all.text) == 0 && all.pieces > 1);
  printf("%s\n", result.text);
  EXPECT(executorch_text_generate(text, "hello", &options, see, &one, &result) == EXECUTORCH_OK);
  EXPECT(strcmp(result.finish_reason, "stopped") == 0 && one.pieces == 1);
  EXPECT(executorch_text_stop(text) == EXECUTORCH_OK);
  EXPECT(executorch_text_generate(text, "hello", NULL, NULL, NULL, NULL) == EXECUTORCH_OK);
  executorch_text_free(text);
}

static void test_loop(const char* path) {
  static const int64_t sizes[] = {50, 4};
  static const float x[200] = {1, 2, 3, 4};
  executorch_program* program = NULL;
  executorch_method* method = NULL;
  executorch_value output;
  EXPECT(executorch_program_load(path, &program) == EXECUTORCH_OK);
  EXPECT(executorch_method_load(program, "forward", &method) == EXECUTORCH_OK);
  EXPECT_ERROR(EXECUTORCH_INVALID_STATE, executorch_method_run(method),
               "input 0 (x) of 3 was never set");
  EXPECT(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 2, sizes, x, sizeof x) == 0);
  EXPECT(executorch_method_run(method) == EXECUTORCH_OK);
  EXPECT(executorch_method_output(method, 0, &output) == EXECUTORCH_OK);
  EXPECT(output.n_bytes == sizeof x && ((const float*)output.data)[3] == 5);
  EXPECT(executorch_method_set_max_work(method, 50) == EXECUTORCH_OK);
  EXPECT(executorch_method_run(method) == EXECUTORCH_INVALID_PROGRAM);
  EXPECT(executorch_method_set_max_work(method, 50000) == EXECUTORCH_OK);
  EXPECT(executorch_method_run(method) == EXECUTORCH_OK);
  executorch_method_free(method);
  executorch_program_free(program);
}

/* Sets both inputs to the first `n` of what is at `x` and `y`. */
static void set_both(executorch_method* method, int64_t n, const float* x, const float* y) {
  const size_t n_bytes = (size_t)n * sizeof(float);
  EXPECT(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 1, &n, x, n_bytes) == 0);
  EXPECT(executorch_method_set_tensor(method, 1, EXECUTORCH_FLOAT, 1, &n, y, n_bytes) == 0);
}

enum { kMaxOutputs = 3, kElements = 4 };

struct outputs {
  size_t count;
  executorch_value values[kMaxOutputs];
  float elements[kMaxOutputs][kElements];
};

static struct outputs outputs_of(executorch_method* method) {
  struct outputs outputs;
  size_t i;
  memset(&outputs, 0, sizeof outputs);
  EXPECT(executorch_method_output_count(method, &outputs.count) == EXECUTORCH_OK);
  EXPECT(outputs.count <= kMaxOutputs);
  for (i = 0; i < outputs.count && i < kMaxOutputs; ++i) {
    executorch_value* const value = &outputs.values[i];
    EXPECT(executorch_method_output(method, i, value) == EXECUTORCH_OK);
    EXPECT(value->dtype == EXECUTORCH_FLOAT && value->n_bytes <= sizeof outputs.elements[i]);
    if (value->data == NULL || value->n_bytes > sizeof outputs.elements[i]) continue;
    memcpy(outputs.elements[i], value->data, (size_t)value->n_bytes);
  }
  return outputs;
}

static void print(const struct outputs* outputs) {
  size_t i, k;
  for (i = 0; i < outputs->count && i < kMaxOutputs; ++i) {
    for (k = 0; k < outputs->values[i].n_bytes / sizeof(float); ++k) {
      printf("%.6f ", outputs->elements[i][k]);
    }
  }
  printf("\n");
}

static int same_elements(const struct outputs* one, const struct outputs* other) {
  return one->count == other->count &&
         memcmp(one->elements, other->elements, sizeof one->elements) == 0;
}

/* Several runs give these outputs again. */
static void expect_repeated(executorch_method* method, const struct outputs* first, int runs) {
  int i;
  for (i = 0; i < runs; ++i) {
    struct outputs now;
    EXPECT(executorch_method_run(method) == EXECUTORCH_OK);
    now = outputs_of(method);
    EXPECT(same_elements(&now, first));
  }
}

static void test_outputs(const char* path) {
  static const float x[] = {1, 2, 3, 4}, y[] = {5, 6, 7, 8}, z[] = {9, 9, 9, 9};
  static const int64_t four = 4;
  executorch_program* program = NULL;
  executorch_method* method = NULL;
  struct outputs first, now;
  int64_t n;
  EXPECT(executorch_program_load(path, &program) == EXECUTORCH_OK);
  EXPECT(executorch_method_load(program, "forward", &method) == EXECUTORCH_OK);
  set_both(method, 4, x, y);
  EXPECT(executorch_method_run(method) == EXECUTORCH_OK);
  first = outputs_of(method);
  print(&first);
  for (n = 4; n > 1; --n) {
    set_both(method, n, z, z);
    now = outputs_of(method);
    EXPECT(memcmp(&now, &first, sizeof now) == 0);
  }
  /* What is wrong is said at once, and the inputs stay. */
  EXPECT_REFUSED(executorch_method_set_tensor(method, 0, EXECUTORCH_INT32, 1, &four, x, sizeof x),
                 "element type");
  EXPECT(executorch_method_run(method) == EXECUTORCH_OK);
  now = outputs_of(method);
  EXPECT(now.values[0].sizes[0] == 2 && !same_elements(&now, &first));
  set_both(method, 4, x, y);
  expect_repeated(method, &first, 2);
  executorch_method_free(method);
  executorch_program_free(program);
}

static void test_repeated(const char* path) {
  static const float x[] = {1, 2, 3, 4, 5};
  static const int64_t four = 4, five = 5;
  const size_t n_bytes = 4 * sizeof(float);
  executorch_program* program = NULL;
  executorch_method* method = NULL;
  struct outputs first;
  EXPECT(executorch_program_load(path, &program) == EXECUTORCH_OK);
  EXPECT(executorch_method_load(program, "forward", &method) == EXECUTORCH_OK);
  EXPECT(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 1, &four, x, n_bytes) == 0);
  EXPECT(executorch_method_run(method) == EXECUTORCH_OK);
  first = outputs_of(method);
  print(&first);
  EXPECT_REFUSED(executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 1, &five, x, sizeof x),
                 "input 0 (x) has shape (5), expected (4)");
  expect_repeated(method, &first, 3);
  executorch_method_free(method);
  executorch_program_free(program);
}

static void test_short(const char* path) {
  executorch_program* program = NULL;
  EXPECT_REFUSED(executorch_program_load(path, &program), "(InvalidArgument)");
  EXPECT(program == NULL);
}

/* Whether it is called for `what`: then each file of the command line is tested. */
static int tests_each(int argc, char** argv, const char* what, void (*test)(const char* path)) {
  int i;
  if (argc < 2 || strcmp(argv[1], what) != 0) return 0;
  for (i = 2; i < argc; ++i) test(argv[i]);
  return 1;
}

int main(int argc, char** argv) {
  test_null_is_refused();
  test_files_that_are_none();
  if (tests_each(argc, argv, "outputs", test_outputs) ||
      tests_each(argc, argv, "repeated", test_repeated) ||
      tests_each(argc, argv, "short", test_short)) {
    return failures != 0;
  }
  if (argc > 1) test_linear(argv[1]);
  if (argc > 3) test_text(argv[2], argv[3]);
  if (argc > 4) test_handed_on(argv[4]);
  if (argc > 5) test_loop(argv[5]);
  return failures != 0;
}
