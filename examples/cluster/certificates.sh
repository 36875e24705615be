#!/bin/sh
# Makes, in the directory given, an authority for the hub's state in NATS, and what it vouches for: a certificate for each NATS server (n1, n2, n3) and
# one for each hub server (a, b, c). Give ca.key to nobody; each machine gets ca.crt and its own pair.
set -eu
cd "${1:?usage: certificates.sh DIRECTORY}"
umask 077

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 \
  -keyout ca.key -out ca.crt -subj '/CN=authority of the hub' 2> /dev/null

# $1: file; $2: names that others know it by; $3: what it is used for.
issue() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1" 2> /dev/null
  printf 'subjectAltName=%s\nextendedKeyUsage=%s\n' "$2" "$3" > "$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 1825 -out "$1.crt" -extfile "$1.ext" 2> /dev/null
  rm "$1.csr" "$1.ext"
}

# NATS servers call each other, so theirs is for both sides.
for name in n1 n2 n3; do issue "$name" "DNS:$name,DNS:$name.example,DNS:localhost,IP:127.0.0.1" serverAuth,clientAuth; done
# The NATS servers know a hub server by this name: it is the user in nats.conf.
for name in a b c; do issue "$name" "DNS:$name.hub" clientAuth; done
