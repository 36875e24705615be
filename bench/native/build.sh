#!/usr/bin/env bash
# Builds the C programs that benches compare with into bench/.build; installs libisal-dev, libssl-dev and libipsec-mb-dev when root and missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out="$here/../.build"
mkdir -p "$out"

missing=()
[ -e /usr/include/isa-l.h ] || [ -e /usr/include/isa-l/erasure_code.h ] || missing+=(libisal-dev)
[ -e /usr/include/openssl/evp.h ] || missing+=(libssl-dev)
[ -e /usr/include/intel-ipsec-mb.h ] || [ "$(uname -m)" != x86_64 ] || missing+=(libipsec-mb-dev)
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -q >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -q -o DPkg::Lock::Timeout=300 "${missing[@]}" >&2 || true
  else
    echo "install ${missing[*]} to build every program" >&2
  fi
fi

libraries() {
  case $1 in
    isal | rely | sliding) echo -lisal ;;
    evp) echo -lcrypto ;;
    ipsec_mb) echo -lIPSec_MB ;;
    tunnel) echo -lcrypto -ldl ;;
  esac
}

failed=0
for source in "$here"/*.c; do
  name=$(basename "$source" .c)
  newest=$(ls -t "$source" "$here"/*.h | head -n 1)
  [ "$out/$name" -nt "$newest" ] && continue
  # Into a new file of this process, so that a program that is running keeps its own, and whoever else builds too.
  new="$out/$name.new.$$"
  if gcc -O3 -march=native -Wall -Wextra -o "$new" "$source" $(libraries "$name"); then
    mv "$new" "$out/$name"
  else
    rm -f "$new"
    failed=1
  fi
done

# C++, over the addon's own code without the addon around it.
for source in "$here"/*.cc; do
  [ -e "$source" ] || continue
  name=$(basename "$source" .cc)
  own="$here/../../src/dataplane/native"
  newest=$(ls -t "$source" "$own"/{aes_gcm,chacha_poly1305}.cc "$own"/{aes_gcm,chacha_poly1305,aead_message,vector_registers}.h | head -n 1)
  [ "$out/$name" -nt "$newest" ] && continue
  new="$out/$name.new.$$"
  if g++ -O3 -std=gnu++17 -Wall -Wextra -I "$own" -o "$new" "$source" "$own"/{aes_gcm,chacha_poly1305}.cc; then
    mv "$new" "$out/$name"
  else
    rm -f "$new"
    failed=1
  fi
done
exit $failed
