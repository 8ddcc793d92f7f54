/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: an idle connection keeps only the traffic secret, key, IV and sequence
 * number of each direction. Cipher contexts, two of 1 KiB for each connection, belong to the
 * connections that were used last. Another connection takes over the contexts of the least recently
 * used one, and sets its own keys in them.
 *
 * After a KeyUpdate, secret, key and IV are derived as RFC 8446 section 7 says. No output is longer
 * than one hash, so HKDF-Expand (RFC 5869) is one HMAC.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>

#include "tls/record/record.h"
#include "vethguard/base/secret.h"

#define BLOCK_MAX 128 /* bytes of a block of SHA-384 */
#define LABEL_MAX 24

bool record_suites_init(struct record_suites *suites)
{
	static const char *const names[] = {"AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305"};
	bool good;

	memset(suites, 0, sizeof(*suites));
	list_init(&suites->open);
	suites->sha256 = EVP_MD_fetch(tls_library(), "SHA256", NULL);
	suites->sha384 = EVP_MD_fetch(tls_library(), "SHA384", NULL);
	suites->digest = EVP_MD_CTX_new();
	good = suites->sha256 && suites->sha384 && suites->digest;
	for (size_t i = 0; i < 3; i++) {
		suites->ciphers[i] = EVP_CIPHER_fetch(tls_library(), names[i], NULL);
		good = good && suites->ciphers[i];
	}
	if (!good)
		record_suites_fini(suites);
	return good;
}

void record_suites_fini(struct record_suites *suites)
{
	while (suites->open.next && !list_is_empty(&suites->open))
		record_keys_close(container_of(suites->open.next, struct record_layer, open));
	for (size_t i = 0; i < 3; i++)
		EVP_CIPHER_free(suites->ciphers[i]);
	EVP_MD_free(suites->sha256);
	EVP_MD_free(suites->sha384);
	EVP_MD_CTX_free(suites->digest);
	memset(suites, 0, sizeof(*suites));
}

/* --- keys from secrets --- */

static EVP_MD *hash_of(const struct record_layer *layer)
{
	return layer->suite == 1 ? layer->suites->sha384 : layer->suites->sha256;
}

size_t record_secret_bytes(const struct record_layer *layer)
{
	return layer->suite == 1 ? 48 : 32;
}

/* One half of HMAC (RFC 2104): the hash of the key with this pad and of the text. */
static bool hmac_half(const struct record_layer *layer, const uint8_t *key, uint8_t pad,
        const uint8_t *text, size_t n, uint8_t *out)
{
	EVP_MD_CTX *digest = layer->suites->digest;
	size_t block = layer->suite == 1 ? 128 : 64, secret = record_secret_bytes(layer);
	uint8_t padded[BLOCK_MAX];
	bool good;

	memset(padded, pad, sizeof(padded));
	for (size_t i = 0; i < secret; i++)
		padded[i] ^= key[i];
	good = EVP_DigestInit_ex(digest, hash_of(layer), NULL) == 1 &&
	       EVP_DigestUpdate(digest, padded, block) == 1 &&
	       EVP_DigestUpdate(digest, text, n) == 1 && EVP_DigestFinal_ex(digest, out, NULL) == 1;
	OPENSSL_cleanse(padded, sizeof(padded));
	return good;
}

/* HKDF-Expand-Label with an empty context, for n bytes, no more than one hash. */
static bool expand(const struct record_layer *layer, const uint8_t *secret, const char *label,
        uint8_t *out, size_t n)
{
	uint8_t inner[RECORD_SECRET_MAX], whole[RECORD_SECRET_MAX], text[LABEL_MAX + 5];
	size_t label_n = strlen(label);
	bool good;

	text[0] = 0;
	text[1] = (uint8_t)n;
	text[2] = (uint8_t)label_n;
	memcpy(text + 3, label, label_n);
	text[3 + label_n] = 0;
	text[4 + label_n] = 1; /* HKDF-Expand's counter */
	good = hmac_half(layer, secret, 0x36, text, 5 + label_n, inner) &&
	       hmac_half(layer, secret, 0x5c, inner, record_secret_bytes(layer), whole);
	if (good)
		memcpy(out, whole, n);
	OPENSSL_cleanse(inner, sizeof(inner));
	OPENSSL_cleanse(whole, sizeof(whole));
	return good;
}

size_t record_key_bytes(const struct record_layer *layer)
{
	return (size_t)EVP_CIPHER_get_key_length(layer->suites->ciphers[layer->suite]);
}

bool record_keys_begin(struct record_layer *layer, struct record_keys *keys)
{
	return expand(layer, keys->secret, "tls13 iv", keys->iv, RECORD_IV) &&
	       expand(layer, keys->secret, "tls13 key", keys->key, record_key_bytes(layer));
}

static bool key_into_cipher(const struct record_layer *layer, struct record_keys *keys)
{
	const EVP_CIPHER *cipher = layer->suites->ciphers[layer->suite];
	bool same = EVP_CIPHER_CTX_get0_cipher(keys->cipher) == cipher;

	return EVP_CipherInit_ex2(keys->cipher, same ? NULL : cipher, keys->key, NULL,
	               keys == &layer->writing, NULL) == 1;
}

bool record_keys_update(struct record_layer *layer, struct record_keys *keys)
{
	keys->sequence = 0;
	return expand(layer, keys->secret, "tls13 traffic upd", keys->secret,
	               record_secret_bytes(layer)) &&
	       record_keys_begin(layer, keys) && (!keys->cipher || key_into_cipher(layer, keys));
}

/* --- cipher contexts --- */

void record_keys_close(struct record_layer *layer)
{
	if (!list_has(&layer->open))
		return;
	list_remove(&layer->open);
	layer->suites->open_count--;
	EVP_CIPHER_CTX_free(layer->reading.cipher);
	EVP_CIPHER_CTX_free(layer->writing.cipher);
	layer->reading.cipher = layer->writing.cipher = NULL;
}

/* Takes over the contexts of the least recently used connection. */
static void take_contexts(struct record_layer *layer)
{
	struct record_layer *other =
	        container_of(layer->suites->open.next, struct record_layer, open);

	list_remove(&other->open);
	layer->suites->open_count--;
	layer->reading.cipher = other->reading.cipher;
	layer->writing.cipher = other->writing.cipher;
	other->reading.cipher = other->writing.cipher = NULL;
}

static bool open_contexts(struct record_layer *layer)
{
	struct record_suites *suites = layer->suites;

	if (suites->open_count >= RECORD_CIPHERS_OPEN) {
		take_contexts(layer);
	} else {
		layer->reading.cipher = EVP_CIPHER_CTX_new();
		layer->writing.cipher = EVP_CIPHER_CTX_new();
	}
	list_append(&suites->open, &layer->open);
	suites->open_count++;
	if (layer->reading.cipher && layer->writing.cipher &&
	        key_into_cipher(layer, &layer->reading) && key_into_cipher(layer, &layer->writing))
		return true;
	record_keys_close(layer);
	return false;
}

/* Sees to it that the connection has contexts, and makes it the most recently used one. */
static bool need_contexts(struct record_layer *layer)
{
	struct list *recent = &layer->suites->open;

	if (!list_has(&layer->open))
		return open_contexts(layer);
	if (recent->prev == &layer->open)
		return true;
	list_remove(&layer->open);
	list_append(recent, &layer->open);
	return true;
}

/* --- records --- */

/* The nonce of the next record (section 5.3). */
static void nonce_next(struct record_keys *keys, uint8_t nonce[RECORD_IV])
{
	uint64_t sequence = keys->sequence++;

	memcpy(nonce, keys->iv, RECORD_IV);
	for (size_t i = 0; i < 8; i++)
		nonce[RECORD_IV - 1 - i] ^= (uint8_t)(sequence >> 8 * i);
}

static bool seal(
        struct record_keys *keys, uint8_t *record, uint8_t type, const uint8_t *p, size_t n)
{
	EVP_CIPHER_CTX *c = keys->cipher;
	uint8_t *out = record + RECORD_HEADER, nonce[RECORD_IV];
	int length;

	nonce_next(keys, nonce);
	return EVP_CipherInit_ex(c, NULL, NULL, NULL, nonce, 1) == 1 &&
	       EVP_CipherUpdate(c, NULL, &length, record, RECORD_HEADER) == 1 &&
	       EVP_CipherUpdate(c, out, &length, p, (int)n) == 1 &&
	       EVP_CipherUpdate(c, out + n, &length, &type, 1) == 1 &&
	       EVP_CipherFinal_ex(c, out + n + 1, &length) == 1 &&
	       EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, RECORD_TAG, out + n + 1) == 1;
}

int record_seal(
        struct record_layer *layer, uint8_t type, const uint8_t *p, size_t n, struct buf *out)
{
	size_t sealed = n + 1 + RECORD_TAG;
	uint8_t *record = buf_reserve(out, RECORD_HEADER + sealed);

	if (!record)
		return out->len + RECORD_HEADER + sealed > out->max ? -ENOBUFS : -ENOMEM;
	if (!need_contexts(layer))
		return -EIO;
	memcpy(record, (uint8_t[]){RECORD_DATA, 3, 3, (uint8_t)(sealed >> 8), (uint8_t)sealed},
	        RECORD_HEADER);
	if (!seal(&layer->writing, record, type, p, n))
		return -EIO;
	buf_commit(out, RECORD_HEADER + sealed);
	return 0;
}

/* Decrypts the `inner` bytes of a record: all but the last into out, and the last, usually the
 * content type, into *last. So out needs room for the content, but not for its type. */
static bool open_sealed(
        struct record_keys *keys, const uint8_t *record, size_t inner, uint8_t *out, uint8_t *last)
{
	EVP_CIPHER_CTX *c = keys->cipher;
	const uint8_t *p = record + RECORD_HEADER;
	uint8_t nonce[RECORD_IV], tag[RECORD_TAG];
	int length;

	nonce_next(keys, nonce);
	memcpy(tag, p + inner, RECORD_TAG);
	return EVP_CipherInit_ex(c, NULL, NULL, NULL, nonce, 0) == 1 &&
	       EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, RECORD_TAG, tag) == 1 &&
	       EVP_CipherUpdate(c, NULL, &length, record, RECORD_HEADER) == 1 &&
	       (inner == 1 || EVP_CipherUpdate(c, out, &length, p, (int)(inner - 1)) == 1) &&
	       EVP_CipherUpdate(c, last, &length, p + inner - 1, 1) == 1 &&
	       EVP_CipherFinal_ex(c, last, &length) == 1;
}

uint8_t record_open(struct record_layer *layer, const uint8_t *record, size_t n, uint8_t *out,
        uint8_t *type, size_t *out_n)
{
	size_t inner, content;
	uint8_t last = 0;

	*out_n = 0;
	if (n < RECORD_SEALED || n > RECORD_MAX)
		return SSL_AD_BAD_RECORD_MAC;
	inner = n - RECORD_HEADER - RECORD_TAG;
	if (!need_contexts(layer))
		return SSL_AD_INTERNAL_ERROR;
	if (!open_sealed(&layer->reading, record, inner, out, &last)) {
		OPENSSL_cleanse(out, inner - 1);
		return SSL_AD_BAD_RECORD_MAC;
	}
	content = inner - 1;
	while (!last && content > 0) /* padding */
		last = out[--content];
	if (!last || inner > RECORD_PLAIN_MAX + 1) {
		OPENSSL_cleanse(out, inner - 1);
		return last ? SSL_AD_RECORD_OVERFLOW : SSL_AD_UNEXPECTED_MESSAGE;
	}
	*type = last;
	*out_n = content;
	return 0;
}
