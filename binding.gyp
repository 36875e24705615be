{
  "targets": [
    {
      "target_name": "penstock",
      "sources": [
        "src/dataplane/native/addon.cc",
        "src/dataplane/native/arguments.cc",
        "src/dataplane/native/memory.cc",
        "src/dataplane/native/descriptors.cc",
        "src/dataplane/native/poller.cc",
        "src/dataplane/native/hangup.cc",
        "src/dataplane/native/address.cc",
        "src/dataplane/native/udp.cc",
        "src/dataplane/native/udp_receive.cc",
        "src/dataplane/native/udp_send.cc",
        "src/dataplane/native/interface.cc",
        "src/dataplane/native/segments.cc",
        "src/dataplane/native/tun.cc",
        "src/dataplane/native/connection.cc",
        "src/dataplane/native/tcp.cc",
        "src/dataplane/native/unix_socket.cc",
        "src/dataplane/native/affinity.cc",
        "src/dataplane/native/files.cc",
        "src/dataplane/native/gf256.cc",
        "src/dataplane/native/gf256_packets.cc",
        "src/dataplane/native/gf256_gfni.cc",
        "src/dataplane/native/gf256_x86.cc",
        "src/dataplane/native/gf256_neon.cc",
        "src/dataplane/native/elimination.cc",
        "src/dataplane/native/solve.cc",
        "src/dataplane/native/xor.cc",
        "src/dataplane/native/xor_kernels.cc",
        "src/dataplane/native/coding_coefficients.cc",
        "src/dataplane/native/sliding_window.cc",
        "src/dataplane/native/sliding_equations.cc",
        "src/dataplane/native/sliding_calls.cc",
        "src/dataplane/native/aead.cc",
        "src/dataplane/native/chacha.cc",
        "src/dataplane/native/chacha_x86.cc",
        "src/dataplane/native/chacha_neon.cc",
        "src/dataplane/native/crc32c.cc"
      ],
      "defines": ["NAPI_VERSION=8", "_GNU_SOURCE"],
      "cflags_cc!": ["-O2", "-std=gnu++14"],
      "cflags_cc": ["-std=gnu++17", "-O3", "-fvisibility=hidden", "-fno-plt", "-Wall", "-Wextra"],
      "ldflags": ["-Wl,-z,nodelete"]
    }
  ]
}
