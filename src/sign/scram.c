/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the salted password (PBKDF2) is computed in portions, because a server may
 * ask for a million iterations and the caller serves other connections. The rest follows RFC 5802
 * section 3: ClientKey and ServerKey are HMACs with the salted password as the key; ClientSignature
 * and ServerSignature are HMACs over the three messages, with StoredKey and ServerKey; the proof is
 * ClientKey XOR ClientSignature.
 */
#include "vethguard/sign/scram.h"

#include <errno.h>
#include <stdio.h>

#include "vethguard/base/base64.h"
#include "vethguard/base/hash.h"

#define NONCE_BYTES (SCRAM_NONCE / 4 * 3)
#define END_POINT "p=tls-server-end-point,,"
#define BARE_MAX (sizeof("n=,r=") + SCRAM_NONCE)

/* The content of scram.secret. */
struct keys {
	uint8_t last[HMAC_BYTES];   /* the last iteration's HMAC, U */
	uint8_t salted[HMAC_BYTES]; /* XOR of all U so far; at the end SaltedPassword */
	uint8_t client[HMAC_BYTES], stored[HMAC_BYTES];
	uint8_t server[HMAC_BYTES]; /* ServerKey; at the end ServerSignature */
};

static struct keys *keys_of(const struct scram *s)
{
	return (struct keys *)(void *)s->secret.p;
}

int scram_begin(struct scram *s, enum scram_binding binding, struct slice end_point)
{
	uint8_t random[NONCE_BYTES];

	memset(s, 0, sizeof(*s));
	if (end_point.n > sizeof(s->end_point))
		return -EINVAL;
	s->binding = binding;
	memcpy(s->end_point, end_point.p, end_point.n);
	s->end_point_n = end_point.n;
	random_bytes(random, sizeof(random));
	base64_encode(random, sizeof(random), base64_standard, s->nonce);
	return secret_alloc(&s->secret, sizeof(struct keys));
}

void scram_end(struct scram *s)
{
	secret_free(&s->secret);
	memset(s, 0, sizeof(*s));
}

/* The beginning of the first message, which the final message repeats. */
static struct slice header(const struct scram *s)
{
	return s->binding == SCRAM_BOUND         ? SLICE(END_POINT)
	       : s->binding == SCRAM_NOT_OFFERED ? SLICE("y,,")
	                                         : SLICE("n,,");
}

/* The rest of the first message. PostgreSQL takes the user from its startup message and ignores the
 * name here, which is empty. */
static struct slice bare(const struct scram *s, char out[BARE_MAX])
{
	int n = snprintf(out, BARE_MAX, "n=,r=%.*s", SCRAM_NONCE, s->nonce);

	return slice_of(out, (size_t)n);
}

size_t scram_first(const struct scram *s, char out[SCRAM_FINAL_MAX])
{
	char text[BARE_MAX];
	struct slice start = header(s), rest = bare(s, text);

	memcpy(out, start.p, start.n);
	memcpy(out + start.n, rest.p, rest.n);
	return start.n + rest.n;
}

/* Takes "X=value" and the comma behind it. Returns false if something else is there. */
static bool take_attribute(struct slice *rest, char name, struct slice *value)
{
	ptrdiff_t comma = slice_find_byte(*rest, ',');
	size_t n = comma < 0 ? rest->n : (size_t)comma;

	if (n < 3 || rest->p[0] != name || rest->p[1] != '=')
		return false;
	*value = slice_of(rest->p + 2, n - 2);
	n += comma >= 0;
	*rest = slice_of(rest->p + n, rest->n - n);
	return true;
}

static bool is_nonce(const struct scram *s, struct slice nonce)
{
	for (size_t i = 0; i < nonce.n; i++)
		if (nonce.p[i] < 0x21 || nonce.p[i] > 0x7e)
			return false;
	return nonce.n > SCRAM_NONCE && memcmp(nonce.p, s->nonce, SCRAM_NONCE) == 0;
}

const char *scram_challenge(struct scram *s, struct slice message)
{
	struct slice rest = message, nonce, salt, rounds;
	ssize_t salt_n;
	uint64_t count;

	if (message.n > sizeof(s->server))
		return "the server's SCRAM message is too long";
	if (!take_attribute(&rest, 'r', &nonce) || !take_attribute(&rest, 's', &salt) ||
	        !take_attribute(&rest, 'i', &rounds))
		return "the server's SCRAM message is malformed";
	if (!is_nonce(s, nonce))
		return "the server's SCRAM message does not answer this login";
	salt_n = base64_decode(salt, BASE64_STRICT, s->salt, sizeof(s->salt));
	if (salt_n <= 0)
		return "the server's SCRAM message has no salt that can be read";
	if (!slice_to_u64(rounds, UINT32_MAX, &count) || count < SCRAM_ROUNDS_MIN)
		return "the server asks for fewer than 4096 iterations of SCRAM";
	if (count > SCRAM_ROUNDS_MAX)
		return "the server asks for more than a million iterations of SCRAM";
	s->salt_n = (size_t)salt_n;
	s->rounds = (uint32_t)count;
	memcpy(s->server, message.p, message.n);
	s->server_n = message.n;
	s->full_n = nonce.n;
	return NULL;
}

/* The first iteration: HMAC(password, salt and the number of the block). */
static int derive_first(struct scram *s, struct hmac *hmac, struct slice password)
{
	const struct slice parts[] = {slice_of(s->salt, s->salt_n), SLICE("\0\0\0\1")};
	struct keys *k = keys_of(s);
	int rc = hmac_sha256(hmac, password, parts, 2, k->last);

	memcpy(k->salted, k->last, sizeof(k->salted));
	s->done = 1;
	return rc;
}

int scram_derive(struct scram *s, struct hmac *hmac, struct slice password, uint32_t rounds)
{
	struct keys *k = keys_of(s);
	const struct slice last = slice_of(k->last, sizeof(k->last));
	int rc = s->done ? 0 : derive_first(s, hmac, password);

	for (; rc == 0 && rounds > 0 && s->done < s->rounds; rounds--, s->done++) {
		rc = hmac_sha256(hmac, password, &last, 1, k->last);
		for (size_t i = 0; i < sizeof(k->salted); i++)
			k->salted[i] ^= k->last[i];
	}
	return rc < 0 ? rc : s->done == s->rounds;
}

/* Writes the final message without its proof: "c=BINDING,r=NONCE". */
static int without_proof(const struct scram *s, char out[SCRAM_FINAL_MAX])
{
	uint8_t binding[sizeof(END_POINT) + SCRAM_BINDING_MAX];
	char encoded[BASE64_SIZE(sizeof(binding))];
	struct slice start = header(s);
	size_t n = start.n;
	int written;

	memcpy(binding, start.p, n);
	if (s->binding == SCRAM_BOUND) {
		memcpy(binding + n, s->end_point, s->end_point_n);
		n += s->end_point_n;
	}
	n = base64_encode(binding, n, base64_standard, encoded);
	written = snprintf(out, SCRAM_FINAL_MAX, "c=%.*s,r=%.*s", (int)n, encoded, (int)s->full_n,
	        s->server + 2);
	return written < SCRAM_FINAL_MAX ? written : -EMSGSIZE;
}

/* Computes both sides' keys, the client's proof and the server's signature of the messages. */
static int sign(struct scram *s, struct hmac *hmac, struct slice final)
{
	char text[BARE_MAX];
	const struct slice messages[] = {
	        bare(s, text), SLICE(","), slice_of(s->server, s->server_n), SLICE(","), final};
	const struct slice client = SLICE("Client Key"), server = SLICE("Server Key");
	struct keys *k = keys_of(s);
	const struct slice salted = slice_of(k->salted, HMAC_BYTES),
	                   stored = slice_of(k->stored, HMAC_BYTES),
	                   of_server = slice_of(k->server, HMAC_BYTES),
	                   of_client = slice_of(k->client, HMAC_BYTES);
	int rc = hmac_sha256(hmac, salted, &client, 1, k->client);

	if (rc == 0)
		rc = digest_sha256(&hmac->digest, &of_client, 1, k->stored);
	if (rc == 0)
		rc = hmac_sha256(hmac, stored, messages, 5, k->last);
	if (rc == 0)
		rc = hmac_sha256(hmac, salted, &server, 1, k->server);
	if (rc == 0)
		rc = hmac_sha256(hmac, of_server, messages, 5, k->server);
	for (size_t i = 0; i < HMAC_BYTES; i++)
		k->client[i] ^= k->last[i];
	return rc;
}

int scram_finish(struct scram *s, struct hmac *hmac, char out[SCRAM_FINAL_MAX])
{
	struct keys *k = keys_of(s);
	int n = without_proof(s, out), rc;

	if (n < 0 || (size_t)n + sizeof(",p=") + BASE64_SIZE(HMAC_BYTES) > SCRAM_FINAL_MAX)
		return -EMSGSIZE;
	rc = sign(s, hmac, slice_of(out, (size_t)n));
	if (rc < 0)
		return rc;
	memcpy(out + n, ",p=", sizeof(",p="));
	return n + 3 + (int)base64_encode(k->client, HMAC_BYTES, base64_standard, out + n + 3);
}

const char *scram_verify(const struct scram *s, struct slice message)
{
	const struct keys *k = keys_of(s);
	struct slice rest = message, text;
	uint8_t theirs[HMAC_BYTES];
	uint8_t differ = 0;

	if (take_attribute(&rest, 'e', &text))
		return "the server ended the SCRAM exchange with an error";
	if (!take_attribute(&rest, 'v', &text) ||
	        base64_decode(text, BASE64_STRICT, theirs, sizeof(theirs)) != HMAC_BYTES)
		return "the server's last SCRAM message is malformed";
	for (size_t i = 0; i < HMAC_BYTES; i++)
		differ |= theirs[i] ^ k->server[i];
	return differ ? "the server has not proved that it knows the password" : NULL;
}
