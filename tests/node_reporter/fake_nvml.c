/* A scripted libnvidia-ml.so.1 for tests: unmodified nvidia-ml-py loads it. It contains no NVIDIA code.
 *
 * Its driver calls itself "fake-nvml ..", which a server in production refuses. FAKE_NVML_SCENARIO
 * names a file of "key=value" lines. It is read again whenever it is replaced, so a test changes the
 * machine while the reporter runs:
 *
 *   count= driver= init_error=          the machine
 *   err.<function>= delay_ms.<function>=  every call of one function
 *   gpu.N.<key>=                        uuid name serial vbios busid pci_id cc mem_total mem_used
 *                                       util energy_mj energy_rate_mw power_max_mw pcie_gen
 *                                       pcie_width events field.<id> field_err.<id>
 *                                       gpm (percent), processes, samples ("time:percent,..")
 *   gpu.N.growth=                       so many fetches of a list find it has grown too long
 *   gpu.N.mig= gpu.N.mig_max=           1: MIG mode is on; so many indexes
 *   gpu.N.mig.K.<key>=                  an instance: uuid gi ci slices ci_slices mem_mb mem_used
 *                                       name gpm. It takes the handle of the one before it
 *   gpu.N.err.<function>= gpu.N.err.*=  one function, or all of them, of one GPU
 *   gpu.N.delay_ms.*=                   every call on one GPU hangs this long
 *   event.K=gpu:type:data[:gi:ci]       K = 1, 2, ..: delivered once to a registered event set
 *
 * Not a model of the driver: what NVML leaves undocumented (fork after init) is our assumption.
 * The energy counter is energy_mj + rate x (now - energy_since_ms), wall clock. A process whose clock
 * only moves when told to calls fake_nvml_set_ms.
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
#define INSTANCES_MAX 8
#define GPM_METRICS_MAX 477

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
    int index, instance; /* instance -1: the GPU itself */
} device;
typedef struct {
    char uuid[96];
    int gi;
    double percent, at_s;
} gpm_sample;
typedef struct {
    u32 id;
    int result;
    double value;
    char *names[3];
} gpm_metric;
typedef struct {
    u32 version, count;
    gpm_sample *before, *after;
    gpm_metric metrics[GPM_METRICS_MAX];
} gpm_asked;
typedef struct {
    u32 pid;
    u64 used;
    u32 gi, ci;
} process;
typedef struct {
    u64 at_us;
    union {
        double real;
        u32 small;
        u64 whole;
    } value;
} sample;
typedef struct {
    u32 processors, copy, decoder, encoder, jpeg, ofa, slices, ci_slices;
    u64 mem_mb;
} attributes;
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
static device devices[GPUS_MAX], instances[GPUS_MAX][INSTANCES_MAX];
static u64 grown[GPUS_MAX];
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
    char key[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(key, sizeof key, format, arguments);
    va_end(arguments);
    for (int i = 0; i < script_lines; i++)
        if (strcmp(script[i].key, key) == 0) return script[i].value;
    return NULL;
}

static const char *of(const device *gpu, const char *key) {
    if (gpu->instance < 0) return said("gpu.%d.%s", gpu->index, key);
    return said("gpu.%d.mig.%d.%s", gpu->index, gpu->instance, key);
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

static u64 told_ms;

API void fake_nvml_set_ms(u64 ms) { told_ms = ms; }

static double seconds(clockid_t clock) {
    struct timespec now;
    if (told_ms != 0) return (double)told_ms / 1e3;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Every call passes here: take the lock, read the script, hang if told to, fail if told to. */
static int enter(const char *function, const device *gpu) {
    pthread_mutex_lock(&guard);
    read_script();
    hang(number(said("delay_ms.%s", function), 0));
    if (gpu != NULL) hang(number(said("gpu.%d.delay_ms.*", gpu->index), 0));
    int starting = strncmp(function, "nvmlInit", 8) == 0;
    if (!starting && (users == 0 || owner != getpid())) return UNINITIALIZED;
    u64 error = number(said("err.%s", function), 0);
    if (error != 0 || gpu == NULL) return (int)error;
    error = number(said("gpu.%d.err.*", gpu->index), 0);
    if (error == 0) error = number(said("gpu.%d.err.%s", gpu->index, function), 0);
    if (error == 0 && of(gpu, "uuid") == NULL)
        error = gpu->instance < 0 ? GPU_IS_LOST : INVALID_ARGUMENT; /* a handle of what is gone */
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
        for (int i = 0; i < GPUS_MAX; i++) {
            devices[i] = (device){i, -1};
            for (int k = 0; k < INSTANCES_MAX; k++) instances[i][k] = (device){i, k};
        }
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
    if (result == SUCCESS) result = write_text(buffer, size, driver ? driver : "fake-nvml 580.159.04");
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
NUMBER_CALL(nvmlDeviceGetPowerUsage, u32, "power_mw")

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
        u64 now_ms = (u64)(seconds(CLOCK_REALTIME) * 1e3 + 0.5);
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
    if (result == SUCCESS) { /* neither the parent nor an instance has it */
        percent[0] = (u32)number(text, 0);
        percent[1] = percent[0] / 2;
    }
    return leave(result);
}

API int nvmlDeviceGetMemoryInfo_v2(device *gpu, memory_v2 *memory) {
    int result = enter(__func__, gpu);
    const char *text = result == SUCCESS ? of(gpu, gpu->instance < 0 ? "mem_total" : "mem_mb") : NULL;
    if (result == SUCCESS && text == NULL) result = NOT_SUPPORTED;
    if (result == SUCCESS) {
        memory->total = number(text, 0) * (gpu->instance < 0 ? 1 : 1 << 20);
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

/* Counters are whole numbers of 64 bits; of the others the upper half is not theirs to read. */
API int nvmlDeviceGetFieldValues(device *gpu, int count, field_value *values) {
    int result = enter(__func__, gpu);
    for (int i = 0; result == SUCCESS && i < count; i++) {
        u32 id = values[i].id;
        const char *text = said("gpu.%d.field.%u", gpu->index, id);
        values[i].result = (int)number(said("gpu.%d.field_err.%u", gpu->index, id), 0);
        if (values[i].result == SUCCESS && text == NULL) values[i].result = NOT_SUPPORTED;
        values[i].type = id == 230 ? 1 : 3;
        values[i].value.whole = number(text, 0) | (id == 230 ? 0xDEADBEEF00000000ull : 0);
    }
    return leave(result);
}

/* --- how busy ----------------------------------------------------------------------------- */

/* The size first, then the list; one that grows in between does not fit any more. */
static int fetch(device *gpu, u32 have, u32 *count, int is_fetch) {
    u32 room = *count;
    *count = have;
    if (!is_fetch) return SUCCESS;
    if (grown[gpu->index] < number(said("gpu.%d.growth", gpu->index), 0)) {
        grown[gpu->index]++;
        return INSUFFICIENT_SIZE;
    }
    return room < have ? INSUFFICIENT_SIZE : SUCCESS;
}

API int nvmlDeviceGetComputeRunningProcesses_v3(device *gpu, u32 *count, process *list) {
    int result = enter(__func__, gpu);
    const char *text = result == SUCCESS ? of(gpu, "processes") : NULL;
    if (result == SUCCESS && text == NULL) result = NOT_SUPPORTED;
    if (result == SUCCESS) {
        u32 have = (u32)number(text, 0);
        result = fetch(gpu, have, count, list != NULL);
        if (result == SUCCESS && list == NULL && have > 0) result = INSUFFICIENT_SIZE;
        for (u32 i = 0; result == SUCCESS && list != NULL && i < have; i++)
            list[i] = (process){1000 + i, 1 << 20, ~0u, ~0u};
    }
    return leave(result);
}

API int nvmlDeviceGetSamples(device *gpu, u32 kind, u64 after, u32 *type, u32 *count, sample *list) {
    (void)kind;
    int result = enter(__func__, gpu);
    const char *text = result == SUCCESS ? of(gpu, "samples") : NULL;
    if (result == SUCCESS && (text == NULL || number(of(gpu, "mig"), 0))) result = NOT_SUPPORTED;
    if (result == SUCCESS) {
        u32 have = 0, room = *count;
        u64 at_us, percent;
        for (const char *at = text; at != NULL; at = strchr(at, ',')) {
            if (*at == ',') at++;
            if (sscanf(at, "%llu:%llu", &at_us, &percent) != 2 || at_us <= after) continue;
            if (list != NULL && have < room) {
                list[have].at_us = at_us;
                list[have].value.whole = 0xDEADBEEF00000000ull;
                list[have].value.small = (u32)percent;
            }
            have++;
        }
        *type = 1;
        result = have == 0 ? NOT_FOUND : fetch(gpu, have, count, list != NULL);
    }
    return leave(result);
}

/* --- GPM: two samples, and what lies between them ------------------------------------------ */

API int nvmlGpmQueryDeviceSupport(device *gpu, u32 support[2]) {
    int result = enter(__func__, gpu);
    if (result == SUCCESS) support[1] = of(gpu, "gpm") != NULL;
    return leave(result);
}

API int nvmlGpmSampleAlloc(gpm_sample **fresh) {
    int result = enter(__func__, NULL);
    if (result == SUCCESS) *fresh = calloc(1, sizeof **fresh);
    return leave(result);
}

API int nvmlGpmSampleFree(gpm_sample *old) {
    free(old);
    return SUCCESS;
}

static int take_sample(const device *gpu, int gi, gpm_sample *into) {
    const char *percent = of(gpu, "gpm");
    if (percent == NULL) return NOT_SUPPORTED;
    snprintf(into->uuid, sizeof into->uuid, "%s", of(gpu, "uuid"));
    into->gi = gi;
    into->percent = strtod(percent, NULL);
    into->at_s = seconds(CLOCK_MONOTONIC);
    return SUCCESS;
}

API int nvmlGpmSampleGet(device *gpu, gpm_sample *into) {
    int result = enter(__func__, gpu);
    if (result == SUCCESS) result = take_sample(gpu, -1, into);
    return leave(result);
}

API int nvmlGpmMigSampleGet(device *gpu, u32 gi, gpm_sample *into) {
    int result = enter(__func__, gpu);
    if (result == SUCCESS) {
        result = NOT_FOUND;
        for (int k = 0; k < INSTANCES_MAX; k++) {
            const device *instance = &instances[gpu->index][k];
            if (of(instance, "uuid") != NULL && number(of(instance, "gi"), ~0ull) == gi)
                result = take_sample(instance, (int)gi, into);
        }
    }
    return leave(result);
}

/* Samples of two devices cannot be compared, and 100 ms are needed between two of one. */
API int nvmlGpmMetricsGet(gpm_asked *asked) {
    int result = enter(__func__, NULL);
    if (result == SUCCESS && (asked->version != 1 || asked->count == 0 || asked->count > 8 ||
                              strcmp(asked->before->uuid, asked->after->uuid) != 0 ||
                              asked->before->gi != asked->after->gi))
        result = INVALID_ARGUMENT;
    for (u32 i = 0; result == SUCCESS && i < asked->count; i++) {
        int known = asked->metrics[i].id == 2;
        double apart_s = asked->after->at_s - asked->before->at_s;
        asked->metrics[i].result = known ? SUCCESS : NOT_SUPPORTED;
        asked->metrics[i].value = apart_s > 0.1 ? asked->after->percent : 1e9;
    }
    return leave(result);
}

/* --- MIG ---------------------------------------------------------------------------------- */

API int nvmlDeviceGetMaxMigDeviceCount(device *gpu, u32 *count) {
    int result = enter(__func__, gpu);
    if (result == SUCCESS) *count = (u32)number(of(gpu, "mig_max"), 7);
    return leave(result);
}

API int nvmlDeviceGetMigDeviceHandleByIndex(device *gpu, u32 index, device **instance) {
    int result = enter(__func__, gpu);
    if (result == SUCCESS) {
        *instance = &instances[gpu->index][index % INSTANCES_MAX];
        if (of(*instance, "uuid") == NULL) result = NOT_FOUND;
    }
    return leave(result);
}

NUMBER_CALL(nvmlDeviceGetGpuInstanceId, u32, "gi")
NUMBER_CALL(nvmlDeviceGetComputeInstanceId, u32, "ci")

API int nvmlDeviceGetAttributes_v2(device *gpu, attributes *told) {
    int result = enter(__func__, gpu);
    if (result == SUCCESS && of(gpu, "slices") == NULL) result = NOT_SUPPORTED;
    if (result == SUCCESS) {
        memset(told, 0, sizeof *told);
        told->slices = (u32)number(of(gpu, "slices"), 0);
        told->ci_slices = (u32)number(of(gpu, "ci_slices"), told->slices);
        told->mem_mb = number(of(gpu, "mem_mb"), 0);
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
        event->gpu_instance = event->compute_instance = ~0u;
        if (sscanf(text, "%d:%llu:%llu:%u:%u", &index, &event->type, &event->data,
                   &event->gpu_instance, &event->compute_instance) < 3)
            abort();
        if (index < 0 || index >= GPUS_MAX || !set->registered[index]) continue;
        event->gpu = &devices[index];
        return 1;
    }
    return 0;
}

API int nvmlEventSetWait_v2(event_set *set, event_data *event, u32 timeout_ms) {
    for (u32 waited_ms = 0;; waited_ms += 50) {
        int result = enter(__func__, NULL);
        int found = result == SUCCESS && next_event(set, event);
        leave(result);
        if (result != SUCCESS || found) return result;
        if (waited_ms >= timeout_ms) return TIMEOUT;
        usleep(50000);
    }
}
