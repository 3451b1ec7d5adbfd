/* A scripted libnvidia-ml.so.1 for tests: unmodified nvidia-ml-py loads it. It contains no NVIDIA code.
 *
 * FAKE_NVML_SCENARIO names a file of "key=value" lines. It is read again whenever it is replaced, so
 * a test changes the machine while the reporter runs:
 *
 *   count= driver= init_error=          the machine
 *   err.<function>= delay_ms.<function>=  every call of one function
 *   gpu.N.<key>=                        uuid name serial vbios busid pci_id cc mem_total mem_used
 *                                       util energy_mj energy_rate_mw power_max_mw pcie_gen
 *                                       pcie_width mig events field.<id>
 *   gpu.N.err.<function>= gpu.N.err.*=  one function, or all of them, of one GPU
 *   gpu.N.delay_ms.*=                   every call on one GPU hangs this long
 *   event.K=gpu:type:data               K = 1, 2, ..: delivered once to a registered event set
 *
 * Not a model of the driver: what NVML leaves undocumented (fork after init) is our assumption.
 * The energy counter is energy_mj + rate x (now - energy_since_ms), wall clock.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define LINES_MAX 1024
#define GPUS_MAX 16

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    TIMEOUT = 10,
    GPU_IS_LOST = 15,
};

typedef unsigned int u32;
typedef unsigned long long u64;
typedef struct {
    int index;
} device;
typedef struct {
    u32 next;
    int registered[GPUS_MAX];
} event_set;
typedef struct {
    u32 version;
    u64 total, reserved, free, used;
} memory_v2;
typedef struct {
    char legacy[16];
    u32 domain, bus, dev, id, subsystem;
    char bus_id[32];
} pci_info;
typedef struct {
    u32 id, scope;
    int64_t at_us, latency_us;
    u32 type;
    int result;
    union {
        double real;
        u64 whole;
    } value;
} field_value;
typedef struct {
    device *gpu;
    u64 type, data;
    u32 gpu_instance, compute_instance;
} event_data;

static struct {
    char key[512], value[512];
} script[LINES_MAX];
static int script_lines;
static struct stat script_seen;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static device devices[GPUS_MAX];
static int users;
static pid_t owner;

/* --- the script --------------------------------------------------------------------------- */

static void read_script(void) {
    const char *path = getenv("FAKE_NVML_SCENARIO");
    struct stat now;
    if (path == NULL || stat(path, &now) != 0) {
        script_lines = 0;
        return;
    }
    if (now.st_ino == script_seen.st_ino && now.st_size == script_seen.st_size &&
        memcmp(&now.st_mtim, &script_seen.st_mtim, sizeof now.st_mtim) == 0)
        return;
    FILE *file = fopen(path, "r");
    if (file == NULL) return;
    char line[512];
    script_lines = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        char *equals = strchr(line, '=');
        if (equals == NULL || line[0] == '#') continue;
        if (script_lines == LINES_MAX) abort(); /* a script too long must not pass unnoticed */
        *equals = '\0';
        equals[1 + strcspn(equals + 1, "\r\n")] = '\0';
        snprintf(script[script_lines].key, sizeof script[0].key, "%s", line);
        snprintf(script[script_lines].value, sizeof script[0].value, "%s", equals + 1);
        script_lines++;
    }
    fclose(file);
    script_seen = now;
}

static const char *said(const char *format, ...) {
    char key[96];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(key, sizeof key, format, arguments);
    va_end(arguments);
    for (int i = 0; i < script_lines; i++)
        if (strcmp(script[i].key, key) == 0) return script[i].value;
    return NULL;
}

static const char *of(const device *gpu, const char *key) {
    return said("gpu.%d.%s", gpu->index, key);
}

static u64 number(const char *text, u64 otherwise) {
    return text == NULL ? otherwise : strtoull(text, NULL, 0);
}

static void hang(u64 ms) {
    if (ms == 0) return;
    pthread_mutex_unlock(&guard); /* only the calling thread hangs */
    usleep((useconds_t)ms * 1000);
    pthread_mutex_lock(&guard);
}

/* Every call passes here: take the lock, read the script, hang if told to, fail if told to. */
static int enter(const char *function, const device *gpu) {
    pthread_mutex_lock(&guard);
    read_script();
    hang(number(said("delay_ms.%s", function), 0));
    if (gpu != NULL) hang(number(of(gpu, "delay_ms.*"), 0));
    int starting = strncmp(function, "nvmlInit", 8) == 0;
    if (!starting && (users == 0 || owner != getpid())) return UNINITIALIZED;
    u64 error = number(said("err.%s", function), 0);
    if (error != 0 || gpu == NULL) return (int)error;
    if (gpu < devices || gpu >= devices + GPUS_MAX) return INVALID_ARGUMENT;
    error = number(of(gpu, "err.*"), 0);
    if (error == 0) error = number(said("gpu.%d.err.%s", gpu->index, function), 0);
    if (error == 0 && of(gpu, "uuid") == NULL) error = GPU_IS_LOST;
    return (int)error;
}

static int leave(int result) {
    pthread_mutex_unlock(&guard);
    return result;
}

static int write_text(char *buffer, u32 size, const char *text) {
    if (text == NULL) return NOT_SUPPORTED;
    if (strlen(text) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return SUCCESS;
}

/* --- the library -------------------------------------------------------------------------- */

static int start(const char *function) {
    int result = enter(function, NULL);
    if (result == SUCCESS) result = (int)number(said("init_error"), 0);
    if (result == SUCCESS) {
        if (owner != getpid()) users = 0;
        users++;
        owner = getpid();
        for (int i = 0; i < GPUS_MAX; i++) devices[i].index = i;
    }
    return leave(result);
}

API int nvmlInit_v2(void) { return start(__func__); }

API int nvmlInitWithFlags(u32 flags) {
    (void)flags;
    return start(__func__);
}

API int nvmlShutdown(void) {
    int result = enter(__func__, NULL);
    if (result == SUCCESS) users--;
    return leave(result);
}

API const char *nvmlErrorString(int code) {
    return code == GPU_IS_LOST ? "GPU is lost" : code == 999 ? "Unknown Error" : "scripted error";
}

API int nvmlSystemGetDriverVersion(char *buffer, u32 size) {
    int result = enter(__func__, NULL);
    const char *driver = said("driver");
    if (result == SUCCESS) result = write_text(buffer, size, driver ? driver : "580.159.04");
    return leave(result);
}

API int nvmlDeviceGetCount_v2(u32 *count) {
    int result = enter(__func__, NULL);
    if (result == SUCCESS) *count = (u32)number(said("count"), 0);
    return leave(result);
}

API int nvmlDeviceGetHandleByIndex_v2(u32 index, device **gpu) {
    int result = enter(__func__, NULL);
    if (result == SUCCESS && (index >= number(said("count"), 0) || index >= GPUS_MAX))
        result = INVALID_ARGUMENT;
    if (result == SUCCESS) result = (int)number(said("gpu.%u.err.*", index), 0);
    if (result == SUCCESS) *gpu = &devices[index];
    return leave(result);
}

/* --- one GPU ------------------------------------------------------------------------------ */

#define TEXT_CALL(name, key)                                                         \
    API int name(device *gpu, char *buffer, u32 size) {                              \
        int result = enter(__func__, gpu);                                           \
        if (result == SUCCESS) result = write_text(buffer, size, of(gpu, key));      \
        return leave(result);                                                        \
    }
TEXT_CALL(nvmlDeviceGetName, "name")
TEXT_CALL(nvmlDeviceGetUUID, "uuid")
TEXT_CALL(nvmlDeviceGetSerial, "serial")
TEXT_CALL(nvmlDeviceGetVbiosVersion, "vbios")

#define NUMBER_CALL(name, type, key)                                                 \
    API int name(device *gpu, type *value) {                                         \
        int result = enter(__func__, gpu);                                           \
        const char *text = result == SUCCESS ? of(gpu, key) : NULL;                  \
        if (result == SUCCESS && text == NULL) result = NOT_SUPPORTED;               \
        if (result == SUCCESS) *value = (type)number(text, 0);                       \
        return leave(result);                                                        \
    }
NUMBER_CALL(nvmlDeviceGetMaxPcieLinkGeneration, u32, "pcie_gen")
NUMBER_CALL(nvmlDeviceGetMaxPcieLinkWidth, u32, "pcie_width")

API int nvmlDeviceGetCudaComputeCapability(device *gpu, int *major, int *minor) {
    int result = enter(__func__, gpu);
    const char *text = result == SUCCESS ? of(gpu, "cc") : NULL;
    if (result == SUCCESS && (text == NULL || sscanf(text, "%d.%d", major, minor) != 2))
        result = NOT_SUPPORTED;
    return leave(result);
}

API int nvmlDeviceGetTotalEnergyConsumption(device *gpu, u64 *energy_mj) {
    int result = enter(__func__, gpu);
    const char *text = result == SUCCESS ? of(gpu, "energy_mj") : NULL;
    if (result == SUCCESS && text == NULL) result = NOT_SUPPORTED;
    if (result == SUCCESS) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        u64 now_ms = (u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000;
        u64 since_ms = number(of(gpu, "energy_since_ms"), now_ms);
        *energy_mj = number(text, 0) +
                     number(of(gpu, "energy_rate_mw"), 0) * (now_ms - since_ms) / 1000;
    }
    return leave(result);
}

API int nvmlDeviceGetPowerManagementLimitConstraints(device *gpu, u32 *low_mw, u32 *high_mw) {
    int result = enter(__func__, gpu);
    const char *text = result == SUCCESS ? of(gpu, "power_max_mw") : NULL;
    if (result == SUCCESS && text == NULL) result = NOT_SUPPORTED;
    if (result == SUCCESS) {
        *high_mw = (u32)number(text, 0);
        *low_mw = *high_mw / 4;
    }
    return leave(result);
}

API int nvmlDeviceGetUtilizationRates(device *gpu, u32 percent[2]) {
    int result = enter(__func__, gpu);
    const char *text = result == SUCCESS ? of(gpu, "util") : NULL;
    if (result == SUCCESS && (text == NULL || number(of(gpu, "mig"), 0))) result = NOT_SUPPORTED;
    if (result == SUCCESS) {
        percent[0] = (u32)number(text, 0);
        percent[1] = percent[0] / 2;
    }
    return leave(result);
}

API int nvmlDeviceGetMemoryInfo_v2(device *gpu, memory_v2 *memory) {
    int result = enter(__func__, gpu);
    const char *text = result == SUCCESS ? of(gpu, "mem_total") : NULL;
    if (result == SUCCESS && text == NULL) result = NOT_SUPPORTED;
    if (result == SUCCESS) {
        memory->total = number(text, 0);
        memory->reserved = 0;
        memory->used = number(of(gpu, "mem_used"), 0);
        memory->free = memory->total - memory->used;
    }
    return leave(result);
}

API int nvmlDeviceGetPciInfo_v3(device *gpu, pci_info *pci) {
    int result = enter(__func__, gpu);
    const char *text = result == SUCCESS ? of(gpu, "busid") : NULL;
    if (result == SUCCESS && text == NULL) result = NOT_SUPPORTED;
    if (result == SUCCESS) {
        memset(pci, 0, sizeof *pci);
        snprintf(pci->bus_id, sizeof pci->bus_id, "%s", text);
        pci->id = (u32)number(of(gpu, "pci_id"), 0x233510de);
    }
    return leave(result);
}

API int nvmlDeviceGetMigMode(device *gpu, u32 *current, u32 *pending) {
    int result = enter(__func__, gpu);
    const char *text = result == SUCCESS ? of(gpu, "mig") : NULL;
    if (result == SUCCESS && text == NULL) result = NOT_SUPPORTED;
    if (result == SUCCESS) *current = *pending = (u32)number(text, 0);
    return leave(result);
}

API int nvmlDeviceGetFieldValues(device *gpu, int count, field_value *values) {
    int result = enter(__func__, gpu);
    for (int i = 0; result == SUCCESS && i < count; i++) {
        const char *text = said("gpu.%d.field.%u", gpu->index, values[i].id);
        values[i].result = text == NULL ? NOT_SUPPORTED : SUCCESS;
        values[i].value.whole = number(text, 0);
    }
    return leave(result);
}

/* --- events ------------------------------------------------------------------------------- */

API int nvmlEventSetCreate(event_set **set) {
    int result = enter(__func__, NULL);
    if (result == SUCCESS) {
        *set = calloc(1, sizeof **set);
        (*set)->next = 1;
    }
    return leave(result);
}

API int nvmlEventSetFree(event_set *set) {
    free(set);
    return SUCCESS;
}

API int nvmlDeviceRegisterEvents(device *gpu, u64 types, event_set *set) {
    (void)types;
    int result = enter(__func__, gpu);
    if (result == SUCCESS && of(gpu, "events") == NULL) result = NOT_SUPPORTED;
    if (result == SUCCESS) set->registered[gpu->index] = 1;
    return leave(result);
}

/* The next scripted event of a registered GPU; those of others are passed over. */
static int next_event(event_set *set, event_data *event) {
    const char *text;
    while ((text = said("event.%u", set->next)) != NULL) {
        int index = -1;
        set->next++;
        if (sscanf(text, "%d:%llu:%llu", &index, &event->type, &event->data) != 3) abort();
        if (index < 0 || index >= GPUS_MAX || !set->registered[index]) continue;
        event->gpu = &devices[index];
        event->gpu_instance = event->compute_instance = ~0u;
        return 1;
    }
    return 0;
}

API int nvmlEventSetWait_v2(event_set *set, event_data *event, u32 timeout_ms) {
    for (u32 waited_ms = 0;; waited_ms += 10) {
        int result = enter(__func__, NULL);
        int found = result == SUCCESS && next_event(set, event);
        leave(result);
        if (result != SUCCESS || found) return result;
        if (waited_ms >= timeout_ms) return TIMEOUT;
        usleep(10000);
    }
}
