/* A scripted libze_loader.so.1 for tests: the unmodified package pyzes 0.1.3 loads it. It contains
 * no Intel code; layouts follow the package's own bindings. FAKE_ZE_SCENARIO names the script:
 *
 *   count=                      devices of one driver
 *   gpu.N.<key>=                type uuid_byte name serial driver bus reset pcie_gen pcie_width
 *   gpu.N.powers= gpu.N.power.K.<key>=       domain sub limit_mw energy_uj
 *   gpu.N.engines= gpu.N.engine.K.<key>=     type sub active_us at_us
 *   gpu.N.memories= gpu.N.memory.K.<key>=    location size free
 *   err.<function>= gpu.N.err.<function>= gpu.N.err.*=
 *
 * Not a model of Level Zero.
 */
#define SCRIPT "FAKE_ZE_SCENARIO"
#include "fake_script.h"

typedef struct {
    int stype;
    void *next;
    int type;
    u32 vendor, device, flags, subdevice, clock;
    u64 allocation;
    u32 numbers[7];
    u64 timer;
    u32 bits[2];
    unsigned char uuid[16];
    char name[256];
} core_properties;
typedef struct {
    int stype;
    void *next;
    core_properties core;
    u32 subdevices;
    char serial[64], board[64], brand[64], model[64], vendor[64], driver[64];
} device_properties;
typedef struct {
    int stype;
    void *next;
    unsigned char uuid[16];
    int type;
    u32 flags;
} device_more;
typedef struct {
    int stype;
    void *next;
    u32 reset, repaired;
} device_state;
typedef struct {
    int stype;
    void *next;
    u32 domain, bus, device, function;
    int gen, width;
    int64_t bandwidth;
} pci;
typedef struct {
    int stype;
    void *next;
    unsigned char on_subdevice;
    u32 subdevice;
    unsigned char can_control, has_threshold;
    int by_default, least, most;
} power_properties;
typedef struct {
    int stype;
    void *next;
    int domain;
    void *by_default;
} power_more;
typedef struct {
    u64 first, second;
} pair;
typedef struct {
    int stype;
    void *next;
    u32 type;
    unsigned char on_subdevice;
    u32 subdevice;
} engine_properties;
typedef struct {
    int stype;
    void *next;
    int type;
    unsigned char on_subdevice;
    u32 subdevice;
    int location;
    u64 size;
} memory_properties;
typedef struct {
    int stype;
    void *next;
    int health;
    u64 free, size;
} memory_state;

/* A handle is 1 + GPU + 256 x (1 + its number among the GPU's parts of that kind). */
static int gpu_of(void *handle) { return (int)((intptr_t)handle & 0xFF) - 1; }
static int part_of(void *handle) { return (int)((intptr_t)handle >> 8) - 1; }

#define ASKED(name)                                                    \
    int gpu = gpu_of(handle), part = part_of(handle);                  \
    int error = error_of(gpu, name);                                   \
    (void)part;                                                        \
    if (error) return error;

static int listed(u32 *count, void **handles, u32 all, int gpu) {
    if (handles)
        for (u32 n = 0; n < all && n < *count; n++)
            handles[n] = (void *)(intptr_t)(gpu < 0 ? (int)n + 1 : gpu + 1 + 256 * ((int)n + 1));
    *count = all;
    return 0;
}
API int zesInit(u32 flags) {
    (void)flags;
    return error_of(-1, "init");
}
API int zesDriverGet(u32 *count, void **handles) { return listed(count, handles, 1, -1); }
API int zesDeviceGet(void *handle, u32 *count, void **handles) {
    (void)handle;
    return listed(count, handles, (u32)number(0, "count"), -1);
}
API int zesDeviceGetProperties(void *handle, device_properties *filled) {
    ASKED("properties")
    device_more *more = filled->next;
    filled->core.type = (int)number(1, "gpu.%d.type", gpu);
    filled->core.vendor = 0x8086;
    filled->core.device = 0xe211;
    told(filled->model, sizeof filled->model, "gpu.%d.name", gpu);
    told(filled->serial, sizeof filled->serial, "gpu.%d.serial", gpu);
    told(filled->driver, sizeof filled->driver, "gpu.%d.driver", gpu);
    memset(more ? more->uuid : filled->core.uuid, (int)number(0, "gpu.%d.uuid_byte", gpu), 16);
    return 0;
}
API int zesDeviceGetState(void *handle, device_state *filled) {
    ASKED("state")
    filled->reset = (u32)number(0, "gpu.%d.reset", gpu);
    return 0;
}
API int zesDevicePciGetProperties(void *handle, pci *filled) {
    ASKED("pci")
    filled->bus = (u32)number(0, "gpu.%d.bus", gpu);
    filled->gen = (int)number((u64)-1, "gpu.%d.pcie_gen", gpu);
    filled->width = (int)number((u64)-1, "gpu.%d.pcie_width", gpu);
    return 0;
}
API int zesDeviceEnumPowerDomains(void *handle, u32 *count, void **handles) {
    ASKED("powers")
    return listed(count, handles, (u32)number(0, "gpu.%d.powers", gpu), gpu);
}
API int zesPowerGetProperties(void *handle, power_properties *filled) {
    ASKED("power")
    power_more *more = filled->next;
    filled->on_subdevice = (unsigned char)number(0, "gpu.%d.power.%d.sub", gpu, part);
    filled->by_default = -1;
    filled->most = (int)number((u64)-1, "gpu.%d.power.%d.limit_mw", gpu, part);
    if (more) more->domain = (int)number(0, "gpu.%d.power.%d.domain", gpu, part);
    return 0;
}
API int zesPowerGetEnergyCounter(void *handle, pair *filled) {
    ASKED("energy")
    filled->first = number(0, "gpu.%d.power.%d.energy_uj", gpu, part);
    return 0;
}
API int zesDeviceEnumEngineGroups(void *handle, u32 *count, void **handles) {
    ASKED("engines")
    return listed(count, handles, (u32)number(0, "gpu.%d.engines", gpu), gpu);
}
API int zesEngineGetProperties(void *handle, engine_properties *filled) {
    ASKED("engine_properties")
    filled->type = (u32)number(0, "gpu.%d.engine.%d.type", gpu, part);
    filled->on_subdevice = (unsigned char)number(0, "gpu.%d.engine.%d.sub", gpu, part);
    return 0;
}
API int zesEngineGetActivity(void *handle, pair *filled) {
    ASKED("activity")
    filled->first = number(0, "gpu.%d.engine.%d.active_us", gpu, part);
    filled->second = number(0, "gpu.%d.engine.%d.at_us", gpu, part);
    return 0;
}
API int zesDeviceEnumMemoryModules(void *handle, u32 *count, void **handles) {
    ASKED("memories")
    return listed(count, handles, (u32)number(0, "gpu.%d.memories", gpu), gpu);
}
API int zesMemoryGetProperties(void *handle, memory_properties *filled) {
    ASKED("memory_properties")
    filled->location = (int)number(1, "gpu.%d.memory.%d.location", gpu, part);
    return 0;
}
API int zesMemoryGetState(void *handle, memory_state *filled) {
    ASKED("memory")
    filled->size = number(0, "gpu.%d.memory.%d.size", gpu, part);
    filled->free = number(0, "gpu.%d.memory.%d.free", gpu, part);
    return 0;
}
