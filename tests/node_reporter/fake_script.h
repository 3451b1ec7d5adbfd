/* What the scripted driver libraries of AMD and Intel have in common: a file of "key=value" lines,
 * named by the environment and read anew at every call, so a test changes the machine while it is
 * watched. Slow and simple: these libraries are asked a few times a second at most.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
typedef uint32_t u32;
typedef uint64_t u64;

/* The value of a key as text; 0 where the script does not have it. */
static __attribute__((unused)) int told(char *value, size_t room, const char *form, ...) {
    char key[160], line[512];
    va_list list;
    va_start(list, form);
    vsnprintf(key, sizeof key, form, list);
    va_end(list);
    const char *path = getenv(SCRIPT);
    FILE *file = path ? fopen(path, "r") : NULL;
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file)) {
        char *equals = strchr(line, '=');
        if (!equals) continue;
        *equals = 0;
        if (strcmp(line, key)) continue;
        equals[1 + strcspn(equals + 1, "\n")] = 0;
        snprintf(value, room, "%s", equals + 1);
        found = 1;
    }
    if (file) fclose(file);
    return found;
}

static __attribute__((unused)) u64 number(u64 otherwise, const char *form, ...) {
    char key[128], value[64];
    va_list list;
    va_start(list, form);
    vsnprintf(key, sizeof key, form, list);
    va_end(list);
    return told(value, sizeof value, "%s", key) ? strtoull(value, NULL, 0) : otherwise;
}

/* The error the script wants of this call on this GPU, or success. */
static __attribute__((unused)) int error_of(int gpu, const char *call) {
    u64 code = number(0, "err.%s", call);
    if (!code && gpu >= 0) code = number(0, "gpu.%d.err.*", gpu);
    if (!code && gpu >= 0) code = number(0, "gpu.%d.err.%s", gpu, call);
    return (int)code;
}
