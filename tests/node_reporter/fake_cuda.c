/* A scripted libcuda.so.1 for tests: what the challenge for NVIDIA's GPUs asks of CUDA's driver. It
 * contains no NVIDIA code and runs no PTX: cuLaunchKernel takes the arguments it is given and
 * computes on the processor what the kernel is meant to. Addresses on the device are none of the
 * host's, so one that is mistaken for the other is an error. FAKE_CUDA_UUIDS: one or more of 32
 * hexadecimal digits, a blank between; FAKE_CUDA_FAIL: the function that answers 999.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define INVALID 1
#define NOT_READY 3
#define MEMORY_MAX 4
#define DEVICE_BASE 0x7f0000000000ull
#define DEVICE_STEP 0x1000000000ull
#define WORDS 16
#define MAY(name) if (refused(name)) return 999;

static struct { uint8_t *bytes; size_t size; } memory[MEMORY_MAX];
static int memories, started, current, loaded, given_kernel;

static int refused(const char *name) {
    const char *told = getenv("FAKE_CUDA_FAIL");
    return told && strcmp(told, name) == 0;
}
static uint8_t *at(uint64_t address, size_t size) {
    if (address < DEVICE_BASE) return NULL;
    uint64_t number = (address - DEVICE_BASE) / DEVICE_STEP;
    uint64_t offset = (address - DEVICE_BASE) % DEVICE_STEP;
    if (number >= (uint64_t)memories || offset + size > memory[number].size) return NULL;
    return memory[number].bytes + offset;
}
static const char *uuids(void) {
    const char *told = getenv("FAKE_CUDA_UUIDS");
    return told ? told : "";
}

API int cuInit(unsigned flags) {
    MAY("cuInit")
    started = flags == 0;
    return started ? 0 : INVALID;
}
API int cuDeviceGetCount(int *count) {
    MAY("cuDeviceGetCount")
    *count = (int)((strlen(uuids()) + 1) / 33);
    return started ? 0 : NOT_READY;
}
API int cuDeviceGet(int *device, int number) {
    MAY("cuDeviceGet")
    *device = number + 100;
    return 0;
}
API int cuDeviceGetUuid(uint8_t *uuid, int device) {
    MAY("cuDeviceGetUuid")
    const char *told = uuids() + 33 * (device - 100);
    for (int n = 0; n < 16; n++) {
        unsigned one;
        if (sscanf(told + 2 * n, "%2x", &one) != 1) return INVALID;
        uuid[n] = (uint8_t)one;
    }
    return 0;
}
API int cuDevicePrimaryCtxRetain(void **context, int device) {
    MAY("cuDevicePrimaryCtxRetain")
    *context = (void *)(intptr_t)(device + 1000);
    return 0;
}
API int cuCtxSetCurrent(void *context) {
    MAY("cuCtxSetCurrent")
    current = (intptr_t)context >= 1100;
    return current ? 0 : INVALID;
}
API int cuModuleLoadData(void **module, const char *ptx) {
    MAY("cuModuleLoadData")
    size_t length = strlen(ptx);
    loaded = current && length > 10000 && !strncmp(ptx, ".version", 8) && ptx[length - 2] == '}';
    *module = &loaded;
    return loaded ? 0 : INVALID;
}
API int cuModuleGetFunction(void **kernel, void *module, const char *name) {
    MAY("cuModuleGetFunction")
    *kernel = &given_kernel;
    return module == &loaded && !strcmp(name, "squares") ? 0 : INVALID;
}
API int cuMemAlloc_v2(uint64_t *address, size_t size) {
    MAY("cuMemAlloc_v2")
    if (!current || memories == MEMORY_MAX) return INVALID;
    memory[memories].bytes = malloc(size);
    memory[memories].size = size;
    *address = DEVICE_BASE + DEVICE_STEP * (uint64_t)memories++;
    return 0;
}
API int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
    MAY("cuMemcpyHtoD_v2")
    uint8_t *there = at(to, size);
    if (!there) return INVALID;
    memcpy(there, from, size);
    return 0;
}
API int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
    MAY("cuMemcpyDtoH_v2")
    uint8_t *there = at(from, size);
    if (!there) return INVALID;
    memcpy(to, there, size);
    return 0;
}
API int cuCtxSynchronize(void) {
    MAY("cuCtxSynchronize")
    return current ? 0 : INVALID;
}

/* y = y^2 / 2^512 mod n, by whole products first and the reduction after: not the kernel's order. */
static void squared(uint32_t *y, const uint32_t *n, uint32_t inverse) {
    uint32_t t[2 * WORDS + 1] = {0};
    for (int i = 0; i < WORDS; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < WORDS; j++) {
            carry += (uint64_t)y[i] * y[j] + t[i + j];
            t[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        t[i + WORDS] = (uint32_t)carry;
    }
    for (int i = 0; i < WORDS; i++) {
        uint32_t m = t[i] * inverse;
        uint64_t carry = 0;
        for (int j = 0; j < WORDS; j++) {
            carry += (uint64_t)m * n[j] + t[i + j];
            t[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        for (int j = i + WORDS; carry && j <= 2 * WORDS; j++) {
            carry += t[j];
            t[j] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    memcpy(y, t + WORDS, 4 * WORDS);
}
API int cuLaunchKernel(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                       void *stream, void **passed, void **extra) {
    MAY("cuLaunchKernel")
    if (kernel != &given_kernel || grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 ||
        shared || stream || extra || block_x > 1024)
        return INVALID;
    uint64_t values = *(uint64_t *)passed[0], modulus = *(uint64_t *)passed[1];
    uint32_t inverse = *(uint32_t *)passed[2], rounds = *(uint32_t *)passed[3];
    size_t lanes = (size_t)grid_x * block_x;
    uint8_t *first = at(values, lanes * 64), *n = at(modulus, 64);
    if (!first || !n) return INVALID;
    for (size_t lane = 0; lane < lanes; lane++)
        for (uint32_t round = 0; round < rounds; round++)
            squared((uint32_t *)(first + 64 * lane), (const uint32_t *)n, inverse);
    return 0;
}
