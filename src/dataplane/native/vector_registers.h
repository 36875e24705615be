/** The vector registers of AVX-512, which keep what was computed in them until something else is. */
#pragma once

namespace penstock {

/** Leaves nothing of keys and texts in them; whoever is called may change them all. */
__attribute__((target("avx512f,avx512vl"), always_inline)) static inline void clearVectorRegisters() {
  asm volatile(
      "vzeroall\n"
      ".irp i, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n"
      "vpxord %%xmm\\i, %%xmm\\i, %%xmm\\i\n"
      ".endr" ::
          : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16",
            "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31");
}

}  // namespace penstock
