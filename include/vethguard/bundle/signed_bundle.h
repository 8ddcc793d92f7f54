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
 * Only name and serial have to be there. A content with any other member is refused.
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
	SIGNED_BUNDLE_SOURCE = 1,    /* the file cannot be fetched or read */
	SIGNED_BUNDLE_FORM = 2,      /* the file is no bundle, or too large or too short */
	SIGNED_BUNDLE_SIGNATURE = 3, /* none of the given keys has signed it */
	SIGNED_BUNDLE_CONTENT = 4,   /* it is signed, but something in it cannot be used */
	SIGNED_BUNDLE_SERIAL = 5,    /* its serial is lower than one seen before, or another content has had it */
	SIGNED_BUNDLE_DISK = 6,      /* it cannot be stored */
	SIGNED_BUNDLE_FAULT_COUNT
};
/* Returns "good", "source", "form", "signature", "content", "serial" or "disk". */
const char *signed_bundle_fault_name(enum signed_bundle_fault fault);

struct signed_bundle_file {
	struct slice name; /* config_bundle_is_file() is true for it */
	struct slice text;
};

struct signed_bundle_token {
	struct slice signer, id;
};

/* An opened bundle. All slices borrow its own memory. */
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

/* Verifies the file with each of the keys until one has signed it, then reads its content. On success *out is owned by
 * the caller. On failure *out is NULL and why says what is wrong; without memory the fault is SIGNED_BUNDLE_SOURCE,
 * SIGNED_BUNDLE_SIGNATURE or SIGNED_BUNDLE_CONTENT. */
enum signed_bundle_fault signed_bundle_open(struct slice file, const struct sign_key *keys, size_t key_count,
        struct signed_bundle **out, char why[SIGNED_BUNDLE_WHY_MAX]);
/* Does the same without looking at the signature: for commands that show what a file says. */
enum signed_bundle_fault signed_bundle_open_unverified(
        struct slice file, struct signed_bundle **out, char why[SIGNED_BUNDLE_WHY_MAX]);
void signed_bundle_free(struct signed_bundle *bundle); /* NULL is allowed */
/* Returns the file with this name, or NULL. */
const struct signed_bundle_file *signed_bundle_find(const struct signed_bundle *bundle, struct slice name);
bool signed_bundle_has_expired(const struct signed_bundle *bundle, int64_t now_s);
/* True for a policy, false for a key set. */
bool signed_bundle_is_policy(struct slice file_name);

/* Loads every policy and every key set of the bundle. Policies may include files of the bundle and presets of
 * preset_dir, and nothing else. A policy that does not load without variables is loaded again with a stand-in as the
 * value of each of its variables. Returns false with the first fault in why. */
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
/* Signs the content with a private key and appends the whole file. Returns 0; -EKEYREJECTED: the key cannot sign; or
 * -errno. */
int signed_bundle_sign(const struct sign_key *key, struct slice content, struct buf *out);
/* Appends the whole file with a signature that another program has made of the magic and the content. Returns 0 or
 * -errno. */
int signed_bundle_join(const uint8_t signature[SIGNED_BUNDLE_SIGNATURE_BYTES], struct slice content, struct buf *out);

#endif
