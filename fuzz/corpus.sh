#!/usr/bin/env bash
# Makes the inputs that other programs write: CSRs, certificates and keys, by the openssl program.
# The keys are thrown-away test keys; running it again makes other ones.
set -euo pipefail
cd "$(dirname "$0")/corpus"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ec() { openssl ecparam -name "$1" -genkey -noout -out "$work/$2.key"; }
rsa() { openssl genpkey -quiet -algorithm RSA -pkeyopt "rsa_keygen_bits:$1" -out "$work/$2.key"; }
request() { # request FILE KEY OPTIONS...
  local file=$1 key=$2
  shift 2
  openssl req -new -key "$work/$key.key" -subj "/O=Example/CN=host.example" "$@" -out "csr/$file"
}

ec secp384r1 p384
ec prime256v1 p256
rsa 3072 rsa3072
openssl genpkey -algorithm ED25519 -out "$work/ed25519.key"

for digest in sha256 sha384 sha512; do
  request "p384-$digest.der" p384 "-$digest" -outform DER
done
request names.pem p384 -sha384 -addext "subjectAltName=DNS:a.example,DNS:b.example,IP:192.0.2.1,IP:2001:db8::1,URI:spiffe://example/x"
request names.der p384 -sha384 -outform DER -addext "subjectAltName=DNS:a.example,IP:192.0.2.1"
request usages.der p384 -sha384 -outform DER -addext "keyUsage=critical,digitalSignature" -addext "extendedKeyUsage=serverAuth,clientAuth" -addext "basicConstraints=critical,CA:TRUE"
request rsa3072.der rsa3072 -sha256 -outform DER
request rsa3072-pss.der rsa3072 -sha384 -outform DER -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest
request p256.der p256 -sha256 -outform DER
request ed25519.der ed25519 -outform DER

openssl req -x509 -new -key "$work/p384.key" -sha384 -days 30 -subj "/CN=A" -out "$work/a.crt"
openssl req -x509 -new -key "$work/p256.key" -sha256 -days 30 -subj "/CN=B" -out "$work/b.crt"
cp "$work/a.crt" pem/one.crt
cat "$work/a.crt" "$work/b.crt" >pem/two.crt
{ echo "Subject: somebody"; cat "$work/a.crt"; echo "and a word after it"; } >pem/text-around.crt
{ printf '\xef\xbb\xbf'; sed 's/$/\r/' "$work/a.crt"; } >pem/bom-crlf.crt
sed '5s/./!/' "$work/a.crt" >pem/broken-line.crt
sed 's/BEGIN CERTIFICATE/BEGIN CERTIFICATE REQUEST/' "$work/a.crt" >pem/wrong-label.crt
for name in a b; do openssl x509 -in "$work/$name.crt" -outform DER -out "certificate/$name.der"; done
openssl req -x509 -new -key "$work/p384.key" -sha384 -days 30 -subj "/C=NL/ST=Utrecht/L=Utrecht/O=Example/CN=full" -outform DER \
  -addext "subjectAltName=DNS:a.example,IP:192.0.2.1,URI:spiffe://example/x,email:ops@example.org" -addext "keyUsage=critical,keyCertSign,cRLSign" \
  -addext "extendedKeyUsage=serverAuth,1.2.3.4" -addext "basicConstraints=critical,CA:TRUE,pathlen:1" -out certificate/full.der
openssl req -x509 -new -key "$work/rsa3072.key" -sha384 -days 30 -subj "/" -outform DER -out certificate/rsa-no-subject.der
openssl req -x509 -new -key "$work/ed25519.key" -days 30 -subj "/CN=ed25519" -outform DER -out certificate/ed25519.der

cat >"$work/ca.cnf" <<CONFIG
[ca]
default_ca = here
[here]
database = $work/index.txt
crlnumber = $work/number
default_md = sha384
default_crl_days = 30
[plain]
authorityKeyIdentifier = keyid
[users]
issuingDistributionPoint = critical, @users_point
[users_point]
onlyuser = TRUE
[part]
issuingDistributionPoint = critical, @part_point
[part_point]
fullname = URI:http://crl.example/1
[indirect]
issuingDistributionPoint = critical, @indirect_point
[indirect_point]
indirectCRL = TRUE
[delta]
2.5.29.27 = critical, ASN1:INTEGER:1
CONFIG
echo 1000 >"$work/number"
printf 'R\t270101000000Z\t260102030405Z,keyCompromise\t0A\tunknown\t/CN=x\nR\t270101000000Z\t260102030405Z\t00FF\tunknown\t/CN=y\n' >"$work/index.txt"
list() { # list SECTION FILE
  openssl ca -gencrl -config "$work/ca.cnf" -crlexts "$1" -cert "$work/a.crt" -keyfile "$work/p384.key" -out "$work/list.pem" 2>/dev/null
  openssl crl -in "$work/list.pem" -outform DER -out "crl/$2"
}
for section in plain users part indirect delta; do list "$section" "$section.der"; done
list plain plain.der
cat "$work/list.pem" "$work/list.pem" >crl/two.pem
: >"$work/index.txt"
list plain empty.der

openssl pkcs8 -topk8 -nocrypt -in "$work/p256.key" -out pem/pkcs8.key
openssl ec -in "$work/p256.key" -out pem/sec1.key 2>/dev/null
openssl pkcs8 -topk8 -in "$work/p256.key" -passout pass:a-passphrase -out pem/encrypted.key

../proxy_headers.py proxy_header
