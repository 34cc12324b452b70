/* Runs a program on inputs of zeros and prints its outputs: run_program model.pte [method]
 * Continues a text: run_program model.pte tokenizer prompt */
#include <executorch/extension/c_api/executorch.h>

#include <stdio.h>
#include <stdlib.h>

static int fail(void) {
  fprintf(stderr, "%s\n", executorch_last_error());
  return 1;
}

/* The largest tensor of zeros that the input takes. */
static int set_zeros(executorch_method* method, size_t i) {
  executorch_value info;
  if (executorch_method_input_info(method, i, &info)) return 1;
  if (info.kind != EXECUTORCH_KIND_TENSOR) return 0; /* part of the program: see the header */
  void* zeros = calloc(info.n_bytes + 1, 1);
  if (zeros == NULL) return 1;
  const int failed = executorch_method_set_tensor(method, i, info.dtype, info.rank, info.sizes,
                                                  zeros, info.n_bytes);
  free(zeros);
  return failed;
}

static void print_output(size_t i, const executorch_value* value) {
  printf("output %zu:", i);
  if (value->kind == EXECUTORCH_KIND_TENSOR && value->dtype == EXECUTORCH_FLOAT) {
    const float* x = value->data;
    for (uint64_t k = 0; k < value->n_bytes / sizeof *x; ++k) printf(" %g", x[k]);
  } else if (value->kind == EXECUTORCH_KIND_TENSOR) {
    printf(" %llu bytes of type %d", (unsigned long long)value->n_bytes, (int)value->dtype);
  }
  printf("\n");
}

static int run(const char* path, const char* name) {
  executorch_program* program = NULL;
  executorch_method* method = NULL;
  size_t n_inputs = 0, n_outputs = 0;
  int failed = executorch_program_load(path, &program) ||
               executorch_method_load(program, name, &method) ||
               executorch_method_input_count(method, &n_inputs) ||
               executorch_method_output_count(method, &n_outputs);
  for (size_t i = 0; !failed && i < n_inputs; ++i) failed = set_zeros(method, i);
  failed = failed || executorch_method_run(method);
  for (size_t i = 0; !failed && i < n_outputs; ++i) {
    executorch_value value;
    failed = executorch_method_output(method, i, &value);
    if (!failed) print_output(i, &value);
  }
  if (failed) fail();
  executorch_method_free(method);
  executorch_program_free(program);
  return failed;
}

static int show(const char* text, size_t n_bytes, void* user) {
  (void)user;
  fwrite(text, 1, n_bytes, stdout);
  fflush(stdout);
  return 0;
}

static int generate(const char* path, const char* tokenizer, const char* prompt) {
  executorch_text* text = NULL;
  executorch_text_options options;
  executorch_text_options_init(&options);
  options.temperature = 0;
  options.max_new_tokens = 20;
  const int failed = executorch_text_load(path, tokenizer, &text) ||
                     executorch_text_generate(text, prompt, &options, show, NULL, NULL);
  if (failed) fail();
  executorch_text_free(text);
  printf("\n");
  return failed;
}

int main(int argc, char** argv) {
  if (argc == 4) return generate(argv[1], argv[2], argv[3]);
  if (argc == 2 || argc == 3) return run(argv[1], argc == 3 ? argv[2] : "forward");
  fprintf(stderr, "run_program model.pte [method | tokenizer prompt]\n");
  return 2;
}
