#!/bin/sh
# Makes the requests in csr/ with the openssl program. Run it here: ./make.sh
# The keys are thrown away: nothing but the requests is needed.
set -eu
cd "$(dirname "$0")/csr"
keys=$(mktemp -d)
trap 'rm -rf "$keys"' EXIT

SUBJECT="/C=DE/O=Example, Inc./CN=web.example.org"
NAMES="subjectAltName=DNS:web.example.org,DNS:www.example.org,IP:192.0.2.7,IP:2001:db8::7"

key() { # name, genpkey's options
    name=$1
    shift
    openssl genpkey -quiet -out "$keys/$name" "$@" 2>/dev/null ||
        openssl genpkey -out "$keys/$name" "$@" 2>/dev/null
}
req() { # file, key, req's options
    file=$1 key=$2
    shift 2
    openssl req -new -outform DER -out "$file.der" -key "$keys/$key" -subj "$SUBJECT" -addext "$NAMES" "$@"
}

key p384 -algorithm EC -pkeyopt ec_paramgen_curve:P-384
key p256 -algorithm EC -pkeyopt ec_paramgen_curve:P-256
key p521 -algorithm EC -pkeyopt ec_paramgen_curve:P-521
key p384-explicit -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -pkeyopt ec_param_enc:explicit
openssl ec -in "$keys/p384" -conv_form compressed -out "$keys/p384-compressed" 2>/dev/null
key ed25519 -algorithm ED25519
key rsa2048 -algorithm RSA -pkeyopt rsa_keygen_bits:2048
key rsa3072 -algorithm RSA -pkeyopt rsa_keygen_bits:3072
key rsa4096 -algorithm RSA -pkeyopt rsa_keygen_bits:4096
key rsa3072-e3 -algorithm RSA -pkeyopt rsa_keygen_bits:3072 -pkeyopt rsa_keygen_pubexp:3
key rsa3072-e35 -algorithm RSA -pkeyopt rsa_keygen_bits:3072 -pkeyopt rsa_keygen_pubexp:34359738369
key rsapss -algorithm RSA-PSS -pkeyopt rsa_keygen_bits:3072

# accepted
req p384-sha256 p384 -sha256
req p384-sha384 p384 -sha384
req p384-sha512 p384 -sha512
req rsa3072-sha256 rsa3072 -sha256
req rsa3072-sha384 rsa3072 -sha384
req rsa4096-sha512 rsa4096 -sha512
PSS="-sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest"
# shellcheck disable=SC2086
for digest in sha256 sha384 sha512; do
    req "rsa3072-pss-$digest" rsa3072 "-$digest" $PSS
done
openssl req -new -outform DER -out no-names.der -key "$keys/p384" -subj "$SUBJECT" -sha384
openssl req -new -outform DER -out no-subject.der -key "$keys/p384" -subj / -addext "$NAMES" -sha384
openssl req -new -outform DER -out nothing.der -key "$keys/p384" -subj / -sha384
openssl req -new -outform DER -out ca.der -key "$keys/p384" -subj "/O=Example/CN=Example sub CA" -sha384
cat >"$keys/odd.cnf" <<'CNF'
[req]
distinguished_name = dn
attributes = attributes
req_extensions = extensions
prompt = no
utf8 = yes
string_mask = utf8only
[dn]
C = DE
O = Exämple
0.OU = one
1.OU = two
CN = odd.example.org
emailAddress = me@example.org
[attributes]
challengePassword = a secret that must not be copied
unstructuredName = a name
[extensions]
subjectAltName = @names
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
extendedKeyUsage = codeSigning
1.3.6.1.4.1.55555.1 = ASN1:UTF8String:private extension
nsComment = a comment
[names]
DNS.1 = odd.example.org
IP.1 = 192.0.2.9
URI.1 = https://odd.example.org/
email.1 = me@example.org
RID.1 = 1.2.3.4
otherName.1 = 1.3.6.1.4.1.311.20.2.3;UTF8:admin@example.org
CNF
openssl req -new -outform DER -out odd.der -key "$keys/p384" -config "$keys/odd.cnf" -sha384
openssl req -new -outform DER -out wildcard.der -key "$keys/p384" -subj "$SUBJECT" -sha384 \
    -addext "subjectAltName=DNS:*.example.org"
openssl req -inform DER -in p384-sha384.der -text -out text.pem
openssl req -inform DER -in rsa3072-sha256.der -newhdr -out newhdr.pem

# refused
for key in p256 p521 ed25519 rsa2048 p384-explicit p384-compressed rsa3072-e3 rsa3072-e35 rsapss; do
    req "$key" "$key"
done
req rsa3072-md5 rsa3072 -md5
req rsa3072-sha1 rsa3072 -sha1
req p384-sha1 p384 -sha1
req rsa3072-sha224 rsa3072 -sha224
req rsa3072-pss-longsalt rsa3072 -sha384 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:max
req rsa3072-pss-sha1 rsa3072 -sha1 -sigopt rsa_padding_mode:pss
req rsa3072-pss-mgf1 rsa3072 -sha384 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest \
    -sigopt rsa_mgf1_md:sha256
