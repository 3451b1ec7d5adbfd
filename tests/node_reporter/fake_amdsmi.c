/* A scripted libamd_smi.so for tests: the unmodified package amdsmi 7.0.2 loads it. It contains no
 * AMD code; layouts follow the package's own bindings. FAKE_AMD_SCENARIO names the script:
 *
 *   count=                      GPUs, each in a socket of its own
 *   gpu.N.<key>=                uuid name serial bus vbios driver mem_total mem_used energy
 *                               (accumulator) activity power_uw power_w mean_power_w slot pcie_gen pcie_width
 *   err.<function>= gpu.N.err.<function>= gpu.N.err.*=
 *
 * The package looks up every function when it is imported: those that are not here are made by the
 * tests and answer NOT_SUPPORTED. Not a model of ROCm.
 */
#define SCRIPT "FAKE_AMD_SCENARIO"
#include "fake_script.h"

typedef struct {
    char market_name[256];
    u32 vendor_id;
    char vendor_name[256];
    u32 subvendor_id;
    u64 device_id;
    u32 rev_id;
    char asic_serial[256];
} asic;
typedef struct {
    u64 cap, by_default, dpm, least, most;
} power_cap;
typedef struct {
    u64 watts;
    u32 now_w, mean_w;
} power;
typedef struct {
    char name[256], build_date[256], part_number[256], version[256];
} vbios;
typedef struct {
    char version[256], date[256], name[256];
} driver;
typedef struct {
    uint16_t max_width;
    u32 max_speed, interface_version, slot_type;
} pcie;

static int index_of(void *handle) { return (int)(intptr_t)handle - 1; }

#define ASKED(name)                                                    \
    int gpu = index_of(handle);                                        \
    int error = error_of(gpu, name);                                   \
    if (error) return error;

API int amdsmi_init(u64 flags) {
    (void)flags;
    return error_of(-1, "init");
}
API int amdsmi_shut_down(void) { return error_of(-1, "shut_down"); }

static int listed(u32 *count, void **handles, int only) {
    u32 all = only < 0 ? (u32)number(0, "count") : 1;
    if (handles)
        for (u32 n = 0; n < all && n < *count; n++)
            handles[n] = (void *)(intptr_t)((only < 0 ? (int)n : only) + 1);
    *count = all;
    return 0;
}
API int amdsmi_get_socket_handles(u32 *count, void **handles) { return listed(count, handles, -1); }
API int amdsmi_get_processor_handles(void *handle, u32 *count, void **handles) {
    return listed(count, handles, index_of(handle));
}
API int amdsmi_get_gpu_device_uuid(void *handle, u32 *room, char *uuid) {
    ASKED("uuid")
    return told(uuid, *room, "gpu.%d.uuid", gpu) ? 0 : 2;
}
API int amdsmi_get_gpu_device_bdf(void *handle, u64 *bdf) {
    ASKED("bdf")
    *bdf = number(0, "gpu.%d.bus", gpu) << 8;
    return 0;
}
API int amdsmi_get_gpu_asic_info(void *handle, asic *filled) {
    ASKED("asic")
    memset(filled, 0, sizeof *filled);
    told(filled->market_name, sizeof filled->market_name, "gpu.%d.name", gpu);
    told(filled->asic_serial, sizeof filled->asic_serial, "gpu.%d.serial", gpu);
    filled->vendor_id = 0x1002;
    filled->device_id = 0x74b5;
    return 0;
}
API int amdsmi_get_power_cap_info(void *handle, u32 sensor, power_cap *filled) {
    ASKED("power_cap")
    (void)sensor;
    filled->most = number(0, "gpu.%d.power_uw", gpu);
    return 0;
}
API int amdsmi_get_power_info(void *handle, power *filled) {
    ASKED("power")
    filled->now_w = (u32)number(0xFFFF, "gpu.%d.power_w", gpu);
    filled->mean_w = (u32)number(0xFFFF, "gpu.%d.mean_power_w", gpu);
    return 0;
}
API int amdsmi_get_gpu_vbios_info(void *handle, vbios *filled) {
    ASKED("vbios")
    memset(filled, 0, sizeof *filled);
    told(filled->version, sizeof filled->version, "gpu.%d.vbios", gpu);
    return 0;
}
API int amdsmi_get_gpu_driver_info(void *handle, driver *filled) {
    ASKED("driver")
    memset(filled, 0, sizeof *filled);
    told(filled->version, sizeof filled->version, "gpu.%d.driver", gpu);
    return 0;
}
API int amdsmi_get_pcie_info(void *handle, pcie *filled) {
    ASKED("pcie")
    filled->max_width = (uint16_t)number(0xFFFF, "gpu.%d.pcie_width", gpu);
    filled->interface_version = (u32)number(0xFFFFFFFF, "gpu.%d.pcie_gen", gpu);
    filled->slot_type = (u32)number(0, "gpu.%d.slot", gpu);
    return 0;
}
API int amdsmi_get_energy_count(void *handle, u64 *energy, float *resolution, u64 *timestamp) {
    ASKED("energy")
    *energy = number(0, "gpu.%d.energy", gpu);
    *resolution = 15.3f;
    *timestamp = 0;
    return 0;
}
API int amdsmi_get_gpu_activity(void *handle, u32 *filled) {
    ASKED("activity")
    filled[0] = (u32)number(0xFFFF, "gpu.%d.activity", gpu);
    filled[1] = filled[2] = 0xFFFF;
    return 0;
}
API int amdsmi_get_gpu_memory_total(void *handle, u32 kind, u64 *total) {
    ASKED("memory_total")
    (void)kind;
    *total = number(0, "gpu.%d.mem_total", gpu);
    return 0;
}
API int amdsmi_get_gpu_memory_usage(void *handle, u32 kind, u64 *used) {
    ASKED("memory")
    (void)kind;
    *used = number(0, "gpu.%d.mem_used", gpu);
    return 0;
}
