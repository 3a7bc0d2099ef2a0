/* A library to be preloaded that lets the n-th system call or large allocation of a process fail.
 *
 * fault_arm counts from then on: files below a folder, allocations from a size. What happens at
 * the n-th call depends on the mode: ONCE fails it, ALWAYS fails it and all later ones, SHORT
 * writes half of the data and fails no call, SHORT_THEN writes half and fails all later calls.
 * fault_trace tells from where in Python calls come.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN = 1, READ = 2, WRITE = 4, SYNC = 8, RENAME = 16, CHMOD = 32, UNLINK = 64, ALLOCATE = 128 };
enum { ONCE, ALWAYS, SHORT, SHORT_THEN };

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_int kinds;
static atomic_long seen;
static long target;
static int code, mode;
static size_t least;
static char folder[4096];

void fault_arm(int which, long n, int error, int how, const char *below, size_t size) {
    seen = 0;
    target = n;
    code = error;
    mode = how;
    least = size;
    snprintf(folder, sizeof folder, "%s", below);
    kinds = which;
}

/* Stop counting; return the number of calls counted. */
long fault_disarm(void) {
    kinds = 0;
    return seen;
}

/* Where the places of calls are written: of every call, or of the n-th alone. */
static int traced = -1, every;
static atomic_flag writing = ATOMIC_FLAG_INIT;
static __thread int telling __attribute__((tls_model("initial-exec")));

void fault_trace(int handle, int of_every_call) {
    traced = handle;
    every = of_every_call;
}

/* Write the kind of a call, and the stack by Python's faulthandler, which allocates nothing. */
static void tell(int kind) {
    char line[32];
    if (telling) return;
    telling = 1;
    while (atomic_flag_test_and_set(&writing)) ;
    int size = snprintf(line, sizeof line, "call %d\n", kind);
    if (write(traced, line, size) == size) raise(SIGUSR1);
    atomic_flag_clear(&writing);
    telling = 0;
}

/* What to do: 0 the call as it is, 1 fail, 2 write half. */
static int decide(int kind) {
    if (!(kinds & kind) || telling) return 0;
    long n = ++seen;
    if (traced >= 0 && (every || n == target)) tell(kind);
    if (n == target) {
        if (kind == WRITE && mode >= SHORT) return 2;
        if (mode == SHORT) return 0;
    } else if (n < target || mode == ONCE || mode == SHORT) return 0;
    errno = code;
    return 1;
}

static int below(const char *path) { return !strncmp(path, folder, strlen(folder)); }

static int decide_path(int kind, const char *path) { return kinds & kind && below(path) ? decide(kind) : 0; }

static int decide_file(int kind, int handle) {
    char name[64], path[4096];
    if (!(kinds & kind) || telling) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(name, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return decide_path(kind, path);
}

#define REAL(name, type, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define OPENER(name) \
    int name(const char *path, int flags, ...) { \
        REAL(#name, int, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t permissions = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        return decide_path(OPEN, path) ? -1 : real(path, flags, permissions); \
    }
OPENER(open)
OPENER(open64)

ssize_t read(int handle, void *data, size_t size) {
    REAL("read", ssize_t, int, void *, size_t);
    return decide_file(READ, handle) ? -1 : real(handle, data, size);
}

ssize_t write(int handle, const void *data, size_t size) {
    REAL("write", ssize_t, int, const void *, size_t);
    int what = size ? decide_file(WRITE, handle) : 0;
    return what == 1 ? -1 : real(handle, data, what && size > 1 ? size / 2 : size);
}

int fsync(int handle) {
    REAL("fsync", int, int);
    return decide_file(SYNC, handle) ? -1 : real(handle);
}

int rename(const char *old, const char *new) {
    REAL("rename", int, const char *, const char *);
    return decide_path(RENAME, new) ? -1 : real(old, new);
}

int chmod(const char *path, mode_t permissions) {
    REAL("chmod", int, const char *, mode_t);
    return decide_path(CHMOD, path) ? -1 : real(path, permissions);
}

int unlink(const char *path) {
    REAL("unlink", int, const char *);
    return decide_path(UNLINK, path) ? -1 : real(path);
}

/* Where NumPy and numba allocate the data of arrays: what asks for LEARNED bytes meanwhile. */
enum { LEARNED = 54321, PLACES = 8, ARRAY = 1000 };
static const void *places[PLACES];
static atomic_int known, learning;

void fault_learn(int on) { learning = on; }

/* The data of arrays, small as they are in tests, and whatever else is as large as `least`. NumPy
 * itself crashes where it gets no buffer for an iterator; its other allocations do not count. */
static int is_large(size_t size, const void *caller) {
    Dl_info here, numpy;
    for (int k = 0; k < known; k++)
        if (places[k] == caller) return size >= ARRAY;
    return size >= least && !(dladdr(caller, &here) && dladdr(places[0], &numpy) && here.dli_fbase == numpy.dli_fbase);
}

static int fails(size_t size, const void *caller) {
    if (learning && size == LEARNED && known < PLACES) places[known++] = caller;
    return kinds & ALLOCATE && is_large(size, caller) && decide(ALLOCATE);
}

#define FAILS(size) fails(size, __builtin_return_address(0))

void *malloc(size_t size) { return FAILS(size) ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return FAILS(n * size) ? NULL : __libc_calloc(n, size); }
void *realloc(void *old, size_t size) { return FAILS(size) ? NULL : __libc_realloc(old, size); }
void *memalign(size_t alignment, size_t size) { return FAILS(size) ? NULL : __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) {
    return FAILS(size) ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void **result, size_t alignment, size_t size) {
    return FAILS(size) || !(*result = __libc_memalign(alignment, size)) ? ENOMEM : 0;
}
