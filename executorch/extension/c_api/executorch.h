/*
 * The C interface: load a program (.pte), look at its methods, run them, continue texts with a
 * language model. The base for other languages; C99 and later, and C++.
 *
 *   executorch_program* program = NULL;
 *   executorch_method* method = NULL;
 *   executorch_value output;
 *   const int64_t sizes[] = {1, 3};
 *   const float x[] = {1, 2, 3};
 *   if (executorch_program_load("model.pte", &program) != EXECUTORCH_OK ||
 *       executorch_method_load(program, "forward", &method) != EXECUTORCH_OK ||
 *       executorch_method_set_tensor(method, 0, EXECUTORCH_FLOAT, 2, sizes, x, sizeof x) ||
 *       executorch_method_run(method) || executorch_method_output(method, 0, &output)) {
 *     fprintf(stderr, "%s\n", executorch_last_error());
 *   }
 *   executorch_method_free(method);
 *   executorch_program_free(program);
 *
 * In all functions:
 *   - Whatever the arguments, nothing ends the process and nothing is thrown. A null pointer where
 * none is allowed, an index that does not exist or a damaged file is an error; what a pointer
 * points to is trusted.
 *   - A function that can fail returns EXECUTORCH_OK, which is 0, or why it failed. It then leaves
 * its results alone, and executorch_last_error() says where, what was found and what was expected.
 *   - Text is UTF-8 and ends with a zero byte. Text and memory that a function gives belong to the
 * handle.
 *   - A handle is used by one thread at a time. Different handles, also those of one program, may
 * be used by different threads at once.
 *   - Handles are freed in any order; NULL is freed without effect.
 * The interface is stable: functions, numbers and structures do not change within a major version
 * of the library's file name; new ones may come.
 */
#ifndef EXECUTORCH_EXTENSION_C_API_EXECUTORCH_H
#define EXECUTORCH_EXTENSION_C_API_EXECUTORCH_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define EXECUTORCH_C_API __attribute__((visibility("default")))
#else
#define EXECUTORCH_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Why a call failed: the runtime's error codes. Numbers that are not listed may come, too. */
typedef enum executorch_status {
  EXECUTORCH_OK = 0x00,
  EXECUTORCH_INTERNAL = 0x01,      /* a defect of the library */
  EXECUTORCH_INVALID_STATE = 0x02, /* not now, e.g. an output before the first run */
  EXECUTORCH_NOT_SUPPORTED = 0x10, /* never here */
  EXECUTORCH_NOT_IMPLEMENTED = 0x11,
  EXECUTORCH_INVALID_ARGUMENT = 0x12,
  EXECUTORCH_INVALID_TYPE = 0x13,
  EXECUTORCH_OPERATOR_MISSING = 0x14, /* the program calls an operator that the library lacks */
  EXECUTORCH_NOT_FOUND = 0x20,        /* a method, a backend */
  EXECUTORCH_OUT_OF_MEMORY = 0x21,
  EXECUTORCH_ACCESS_FAILED = 0x22,   /* a file cannot be read */
  EXECUTORCH_INVALID_PROGRAM = 0x23, /* damaged, or not a program */
  EXECUTORCH_OUT_OF_RESOURCES = 0x25
} executorch_status;

/* What a value is. */
typedef enum executorch_kind {
  EXECUTORCH_KIND_NONE = 0,
  EXECUTORCH_KIND_TENSOR = 1,
  EXECUTORCH_KIND_INT = 2,
  EXECUTORCH_KIND_DOUBLE = 3,
  EXECUTORCH_KIND_BOOL = 4,
  EXECUTORCH_KIND_STRING = 5,
  EXECUTORCH_KIND_OTHER = 6 /* a list */
} executorch_kind;

/* Element types, with PyTorch's numbers. Numbers that are not listed may come, too. */
typedef enum executorch_dtype {
  EXECUTORCH_UINT8 = 0,
  EXECUTORCH_INT8 = 1,
  EXECUTORCH_INT16 = 2,
  EXECUTORCH_INT32 = 3,
  EXECUTORCH_INT64 = 4,
  EXECUTORCH_HALF = 5,
  EXECUTORCH_FLOAT = 6,
  EXECUTORCH_DOUBLE = 7,
  EXECUTORCH_BOOL = 11,
  EXECUTORCH_BFLOAT16 = 15,
  EXECUTORCH_UINT16 = 27,
  EXECUTORCH_UINT32 = 28,
  EXECUTORCH_UINT64 = 29
} executorch_dtype;

#define EXECUTORCH_MAX_RANK 16

/* An input or output: what it is declared to be, or what a run gave. */
typedef struct executorch_value {
  int32_t kind; /* executorch_kind; the fields below that do not belong to it are 0 */
  /* EXECUTORCH_KIND_TENSOR */
  int32_t dtype; /* executorch_dtype */
  int32_t rank;  /* 0 to EXECUTORCH_MAX_RANK: that many entries of the following two count */
  int64_t sizes[EXECUTORCH_MAX_RANK];     /* declared: the largest that are allowed */
  uint8_t dim_order[EXECUTORCH_MAX_RANK]; /* dimensions as they lie in memory, outermost first */
  const void*
      data; /* elements, without gaps; NULL for what is declared. EXECUTORCH_KIND_STRING: text */
  uint64_t n_bytes; /* of `data` */
  /* EXECUTORCH_KIND_INT and EXECUTORCH_KIND_BOOL (0 or 1); EXECUTORCH_KIND_DOUBLE */
  int64_t as_int;
  double as_double;
  uint64_t is_dynamic; /* a declared tensor: 1 if its sizes may be smaller, 0 if they may not */
  uint64_t reserved[3];
} executorch_value;

/* A program, and its constants. */
typedef struct executorch_program executorch_program;
/* A method of a program, with memory of its own: methods of one program do not disturb each other.
 */
typedef struct executorch_method executorch_method;
/* A language model with its tokenizer, and one text that it continues. */
typedef struct executorch_text executorch_text;

/* ---- The library
 * ---------------------------------------------------------------------------------- */

/* "1.5.1" and so on. */
EXECUTORCH_C_API const char* executorch_version(void);

/* Why the last call on this thread that failed did so: the function's name, the causes, the name of
 * the status. Empty before the first. Valid until the next call on this thread. */
EXECUTORCH_C_API const char* executorch_last_error(void);

/* Called with the library's messages, errors included, on the thread that says them. `level` is
 * 'D'ebug, 'I'nfo, 'E'rror or 'F'atal. It must not call this library. */
typedef void (*executorch_log_function)(char level, const char* message, void* user);

/* From now on `log`, with `user`, gets the messages; NULL, as at the beginning: nobody. No other
 * call may run meanwhile. */
EXECUTORCH_C_API void executorch_set_log(executorch_log_function log, void* user);

/* How many threads one run uses, at least 1. The default is one for each performance core. No other
 * call may run meanwhile. EXECUTORCH_INVALID_ARGUMENT for 0 or more than 1024. */
EXECUTORCH_C_API executorch_status executorch_set_threads(uint32_t n);

/* ---- Programs
 * ------------------------------------------------------------------------------------- */

/* Loads and verifies the file at `path`, which is mapped: it must not change while it is in use.
 * EXECUTORCH_ACCESS_FAILED, EXECUTORCH_INVALID_ARGUMENT for a file that is too short for a program,
 * EXECUTORCH_INVALID_PROGRAM, EXECUTORCH_OUT_OF_MEMORY. */
EXECUTORCH_C_API executorch_status executorch_program_load(const char* path,
                                                           executorch_program** program);

/* The same of `n_bytes` at `bytes`. With `borrow` other than 0 they are used where they lie, at an
 * address that is a multiple of 16, and must stay there unchanged until the program and its methods
 * are freed; else they are copied. */
EXECUTORCH_C_API executorch_status executorch_program_load_memory(const void* bytes, size_t n_bytes,
                                                                  int borrow,
                                                                  executorch_program** program);

EXECUTORCH_C_API void executorch_program_free(executorch_program* program);

EXECUTORCH_C_API executorch_status
executorch_program_method_count(const executorch_program* program, size_t* count);

/* The name of a method, valid until the program is freed. */
EXECUTORCH_C_API executorch_status executorch_program_method_name(const executorch_program* program,
                                                                  size_t index, const char** name);

/* ---- Methods
 * -------------------------------------------------------------------------------------- */

/* Makes a method ready to run. It keeps what it needs of the program, which may be freed before it.
 * EXECUTORCH_NOT_FOUND, EXECUTORCH_OPERATOR_MISSING, EXECUTORCH_OUT_OF_MEMORY. */
EXECUTORCH_C_API executorch_status executorch_method_load(const executorch_program* program,
                                                          const char* name,
                                                          executorch_method** method);

EXECUTORCH_C_API void executorch_method_free(executorch_method* method);

EXECUTORCH_C_API executorch_status executorch_method_input_count(const executorch_method* method,
                                                                 size_t* count);
EXECUTORCH_C_API executorch_status executorch_method_output_count(const executorch_method* method,
                                                                  size_t* count);

/* What the exported model calls an input, the name of its parameter ("tokens"), and an output, the
   keys under which it returns it ("logits", "cache.0"); "" where the program does not say. The text
   lives as long as the method. */
EXECUTORCH_C_API executorch_status executorch_method_input_name(const executorch_method* method,
                                                                size_t index, const char** name);
EXECUTORCH_C_API executorch_status executorch_method_output_name(const executorch_method* method,
                                                                 size_t index, const char** name);

/* What an input or output is declared to be. */
EXECUTORCH_C_API executorch_status executorch_method_input_info(const executorch_method* method,
                                                                size_t index,
                                                                executorch_value* info);
EXECUTORCH_C_API executorch_status executorch_method_output_info(const executorch_method* method,
                                                                 size_t index,
                                                                 executorch_value* info);

/* Sets an input to a tensor. `rank` entries of `sizes` (NULL is fine for rank 0) within what is
 * declared, `n_bytes` of elements at `data`, in the order of the declared dim_order; they are
 * copied. An input keeps its value for later runs, but for what the method itself writes to one
 * that the program has no memory for. EXECUTORCH_INVALID_ARGUMENT for what does not fit. */
EXECUTORCH_C_API executorch_status executorch_method_set_tensor(executorch_method* method,
                                                                size_t index, int32_t dtype,
                                                                int32_t rank, const int64_t* sizes,
                                                                const void* data, size_t n_bytes);

/* Sets an input to a number. Numbers are part of an exported program: others than at export are
 * refused. */
EXECUTORCH_C_API executorch_status executorch_method_set_int(executorch_method* method,
                                                             size_t index, int64_t value);
EXECUTORCH_C_API executorch_status executorch_method_set_double(executorch_method* method,
                                                                size_t index, double value);
EXECUTORCH_C_API executorch_status executorch_method_set_bool(executorch_method* method,
                                                              size_t index, int value);

/* Limits the work of loops in one run. Without this call they may run 10 million instructions and
 * do 10^10 units of work, some half an hour. A run that needs more is EXECUTORCH_INVALID_PROGRAM.
 * An operator that runs again costs 4 units, and more with large tensors, a delegate 100: see
 * Method::set_max_work() of the C++ interface. */
EXECUTORCH_C_API executorch_status executorch_method_set_max_work(executorch_method* method,
                                                                  uint64_t units);

/* Runs the method. EXECUTORCH_INVALID_STATE while a tensor was never set; other inputs have the
 * values that the program says. Outputs that the program has no memory for get some in the first
 * run, enough for their largest sizes: EXECUTORCH_OUT_OF_MEMORY. */
EXECUTORCH_C_API executorch_status executorch_method_run(executorch_method* method);

/* An output of the last run. Its data is valid until the next run, or until the method is freed,
 * whatever inputs are set meanwhile. EXECUTORCH_INVALID_STATE before the first run and after one
 * that failed. */
EXECUTORCH_C_API executorch_status executorch_method_output(const executorch_method* method,
                                                            size_t index, executorch_value* output);

/* ---- Texts
 * ---------------------------------------------------------------------------------------- */

/* How a text is continued. executorch_text_options_init() fills in the defaults. */
typedef struct executorch_text_options {
  uint32_t struct_size;   /* sizeof(executorch_text_options) */
  float temperature;      /* 0: the likeliest token is taken; 0.8 */
  float top_p;            /* of the tokens the likeliest that add up to this probability; 1: all */
  int32_t top_k;          /* the likeliest so many; 0: all */
  uint64_t seed;          /* equal seeds give equal texts; 0 */
  int64_t max_new_tokens; /* -1: as many as there is room for */
} executorch_text_options;

/* What became of a text. */
typedef struct executorch_text_result {
  const char* text; /* what was added; valid until the next text, or until the handle is freed */
  const char*
      finish_reason; /* "length", "end_of_text", "context_full", "stopped" ...; always valid */
  int64_t n_prompt_tokens;
  int64_t n_new_tokens;
  double time_to_first_token_seconds; /* 0: the text ended before one was chosen */
  double decode_seconds;              /* for the tokens after the first */
  uint64_t reserved[4];
} executorch_text_result;

/* Gets text as it is made, whole characters in order: `n_bytes`, then a zero byte. Other than 0
 * ends it. */
typedef int (*executorch_text_function)(const char* text, size_t n_bytes, void* user);

/* Loads a language model, and its tokenizer from `tokenizer_path`, or, for NULL, from the program's
 * named data. EXECUTORCH_ACCESS_FAILED, EXECUTORCH_INVALID_PROGRAM, EXECUTORCH_INVALID_ARGUMENT. */
EXECUTORCH_C_API executorch_status executorch_text_load(const char* model_path,
                                                        const char* tokenizer_path,
                                                        executorch_text** text);

EXECUTORCH_C_API void executorch_text_free(executorch_text* text);

EXECUTORCH_C_API executorch_status executorch_text_options_init(executorch_text_options* options);

/* Continues `prompt`. What it begins with and the last text had, too, is not computed again.
 * `options` may be NULL: the defaults; `on_text`: nobody is told meanwhile; `result`: it is not
 * wanted. */
EXECUTORCH_C_API executorch_status executorch_text_generate(
    executorch_text* text, const char* prompt, const executorch_text_options* options,
    executorch_text_function on_text, void* user, executorch_text_result* result);

/* The executorch_text_generate() that runs ends soon. The one function that another thread may
 * call. */
EXECUTORCH_C_API executorch_status executorch_text_stop(executorch_text* text);

#ifdef __cplusplus
}
#endif

#endif
