/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signed_bundle: policies, key sets of token signers and revocations as one signed file, for many gateways.
 *
 * The file is: 16 bytes "vethguard-bundle" (SIGNED_BUNDLE_MAGIC); 64 bytes of signature; the content, a JSON text.
 * The signature (tls/sign_key.h) covers the magic and the content. Nothing of the content is parsed before a known key
 * has verified it.
 *
 *     {"name": "fleet", "serial": 7, "expires": 1795600000,
 *      "files": {"agent.yaml": "vethguard: 1\n...", "control.jwks": "{\"keys\": ...}"},
 *      "revoked": {"sessions": ["agent-7"], "tokens": [{"signer": "control", "id": "run-1"}]}}
 *
 * Only name and serial are needed. A member that is not known is refused.
 */
#ifndef VETHGUARD_BUNDLE_SIGNED_BUNDLE_H
#define VETHGUARD_BUNDLE_SIGNED_BUNDLE_H

#include "vethguard/base/buf.h"
#include "vethguard/policy/config.h"
#include "vethguard/policy/json.h"
#include "vethguard/tls/sign_key.h"

#define SIGNED_BUNDLE_MAGIC "vethguard-bundle"
#define SIGNED_BUNDLE_MAGIC_BYTES 16
#define SIGNED_BUNDLE_SIGNATURE_BYTES SIGN_KEY_SIGNATURE_BYTES
#define SIGNED_BUNDLE_HEAD_BYTES (SIGNED_BUNDLE_MAGIC_BYTES + SIGNED_BUNDLE_SIGNATURE_BYTES)
#define SIGNED_BUNDLE_BYTES_MAX (1u << 20) /* of the whole file */
#define SIGNED_BUNDLE_FILES_MAX 128
#define SIGNED_BUNDLE_REVOKED_MAX 4096                     /* session names, and as many tokens */
#define SIGNED_BUNDLE_SIGNER_MAX 24                        /* bytes of a signer's name in a revocation */
#define SIGNED_BUNDLE_ID_MAX 255                           /* bytes of a token's id in a revocation */
#define SIGNED_BUNDLE_SESSION_MAX 64                       /* bytes of a session's name in a revocation */
#define SIGNED_BUNDLE_SERIAL_MAX UINT64_C(999999999999999) /* 15 digits */
#define SIGNED_BUNDLE_KEYS_MAX 4
#define SIGNED_BUNDLE_DIGEST_BYTES 32
#define SIGNED_BUNDLE_WHY_MAX 1024

/* --- reading --- */

/* What is wrong with a bundle: the kind of fault, for logs and the control API. */
enum signed_bundle_fault {
	SIGNED_BUNDLE_GOOD = 0,
	SIGNED_BUNDLE_SOURCE = 1,    /* it cannot be fetched or read */
	SIGNED_BUNDLE_FORM = 2,      /* it is no bundle, or too large or too short */
	SIGNED_BUNDLE_SIGNATURE = 3, /* no key that is known has signed it */
	SIGNED_BUNDLE_CONTENT = 4,   /* it is signed, but something in it cannot be used */
	SIGNED_BUNDLE_SERIAL = 5,    /* its serial is lower than one that was seen, or used twice */
	SIGNED_BUNDLE_DISK = 6,      /* it cannot be kept */
	SIGNED_BUNDLE_FAULT_COUNT
};
/* "good", "source", "form", "signature", "content", "serial", "disk". */
const char *signed_bundle_fault_name(enum signed_bundle_fault fault);

struct signed_bundle_file {
	struct slice name; /* config_bundle_is_file() */
	struct slice text;
};

struct signed_bundle_token {
	struct slice signer, id;
};

/* A bundle whose signature is right. All slices borrow its own memory. */
struct signed_bundle {
	char *memory; /* owned: the file */
	size_t n;
	struct json_tree tree;
	struct slice name;
	uint64_t serial;   /* from 1 */
	int64_t expires_s; /* Unix time; 0: it does not expire */
	size_t file_count;
	struct signed_bundle_file files[SIGNED_BUNDLE_FILES_MAX];
	size_t session_count, token_count;
	struct slice *sessions;                     /* owned */
	struct signed_bundle_token *tokens;         /* owned */
	uint8_t digest[SIGNED_BUNDLE_DIGEST_BYTES]; /* SHA-256 of the content */
};

/* Verifies the file by any of the keys, then reads its content. On success *out is owned by the caller. On failure
 * *out is NULL and why says what is wrong; SIGNED_BUNDLE_SOURCE: no memory. */
enum signed_bundle_fault signed_bundle_open(struct slice file, const struct sign_key *keys, size_t key_count,
        struct signed_bundle **out, char why[SIGNED_BUNDLE_WHY_MAX]);
/* Reads the content of a file without looking at its signature: for commands that show what a file says. */
enum signed_bundle_fault signed_bundle_open_unverified(
        struct slice file, struct signed_bundle **out, char why[SIGNED_BUNDLE_WHY_MAX]);
void signed_bundle_free(struct signed_bundle *bundle); /* NULL is allowed */
/* The file with this name, or NULL. */
const struct signed_bundle_file *signed_bundle_find(const struct signed_bundle *bundle, struct slice name);
bool signed_bundle_has_expired(const struct signed_bundle *bundle, int64_t now_s);
/* True for a policy, false for a key set. */
bool signed_bundle_is_policy(struct slice file_name);

/* Loads every policy and every key set of the bundle. Policies may include files of the bundle and presets of
 * preset_dir, and nothing else. A policy with variables is loaded with a stand-in for those without a value. Returns
 * false with the first faults in why. */
bool signed_bundle_check(const struct signed_bundle *bundle, const char *preset_dir, char why[SIGNED_BUNDLE_WHY_MAX]);

/* --- writing --- */

struct signed_bundle_draft {
	struct slice name;
	uint64_t serial;
	int64_t expires_s; /* 0: none */
	size_t file_count;
	struct signed_bundle_file files[SIGNED_BUNDLE_FILES_MAX];
	size_t session_count, token_count;
	const struct slice *sessions;
	const struct signed_bundle_token *tokens;
};

/* Appends the content (JSON). Returns 0 or -errno; -ENOBUFS: out is full. */
int signed_bundle_write(const struct signed_bundle_draft *draft, struct buf *out);
/* Appends the file: the content with its signature by a private key. Returns 0; -EKEYREJECTED: the key cannot sign; or
 * -errno. */
int signed_bundle_sign(const struct sign_key *key, struct slice content, struct buf *out);
/* The same with a signature that somebody else has made of the magic and the content. */
int signed_bundle_join(const uint8_t signature[SIGNED_BUNDLE_SIGNATURE_BYTES], struct slice content, struct buf *out);

#endif
