/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundles: signed bundles of policies, key sets and revocations (bundle/signed_bundle.h) that the
 * configuration names. Each is looked at or fetched again and again, verified, checked as a whole,
 * kept on the disk, and only then put in force.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_BUNDLES_BUNDLES_H
#define VETHGUARD_SRC_SUPERVISOR_BUNDLES_BUNDLES_H

#include <sys/stat.h>

#include "supervisor/attach/attachments.h"
#include "supervisor/config/bundle_store.h"
#include "supervisor/config/key_fetch.h"

#define BUNDLES_LOOK_MS 5000   /* interval of looks at files, and at URLs that are due */
#define BUNDLES_AGAIN_S 15     /* before a URL that failed is asked again */
#define BUNDLES_RELOADS_MAX 8  /* at a time, after a bundle was taken */
#define BUNDLES_LOCAL_MAX 4096 /* bytes of a public key's file */

/* One of the configuration's bundles. */
struct bundle {
	struct attachments *all;
	struct config_bundle config;
	struct sign_key keys[CONFIG_BUNDLE_KEYS_MAX];
	size_t key_count;
	struct bundle_store store;
	bool damaged;                                  /* what was kept cannot be used */
	struct signed_bundle *active;                  /* owned: in force; NULL: none */
	uint8_t (*tokens)[SIGNED_BUNDLE_DIGEST_BYTES]; /* owned: what active revokes, hashed */
	int64_t taken_ms, looked_ms;                   /* Unix times; 0: not yet */
	enum signed_bundle_fault fault;
	char why[SIGNED_BUNDLE_WHY_MAX]; /* if there is a fault */
	struct stat seen;                /* a file's state when it was read */
	struct key_fetch *running;       /* owned; NULL: none */
	bool over;                       /* running has ended */
	bool told_expired;               /* it was logged that active has expired */
	int64_t again_ms;                /* when its URL is asked again: loop_now_ms() */
	char etag[KEY_ETAG_MAX];         /* of the bundle that is in force; empty: none */
};

struct bundles {
	char path[PATH_MAX]; /* the directory of all stores; empty: it is not open yet */
	int dir;             /* owned, if path is set */
	size_t config_count;
	struct config_bundle *configs; /* owned: the configuration as it is now */
	size_t count;
	struct bundle *items[CONFIG_BUNDLES_MAX]; /* owned */
	struct loop_timer look;
	bool polls;       /* sources are looked at */
	bool pumping;     /* reloads are being started */
	size_t reloading; /* reloads under way */
};

/* bundles.c */
/* Writes a view of all of them to out. Returns how many there are. */
size_t attachments_bundles(
        const struct attachments *all, struct attach_bundle out[CONFIG_BUNDLES_MAX]);
/* Takes the configuration's bundles. Returns 0 or -ENOMEM. */
int bundles_configure(struct attachments *all, const struct config *config);
/* Reads what was kept, before sandboxes are recovered. */
void bundles_load(struct attachments *all);
/* Ends the sessions that the bundles in force revoke, and begins to look at the sources. May be
 * called again. */
void bundles_poll(struct attachments *all);
/* Looks at all sources now. */
void bundles_look_now(struct attachments *all);
void bundles_close(struct attachments *all);

/* bundle_source.c */
/* Looks at the source of one bundle, if it is due; now: in any case. */
void bundle_look(struct bundle *b, bool now);
/* Opens its store and keys, and reads what was kept. */
void bundle_open(struct bundle *b);
void bundle_free(struct bundle *b);
/* Sets what is in force, and hashes what it revokes. Takes next (may be NULL). Returns 0, or -errno
 * with nothing changed and next still the caller's. */
int bundle_set_active(struct bundle *b, struct signed_bundle *next);

/* bundle_fault.c. Notes and reports a fault. What is in force stays. */
void bundle_fail(struct bundle *b, enum signed_bundle_fault fault, const char *why);

/* bundle_take.c */
/* Takes the bytes of a bundle: all of it, or nothing with a fault. Returns true if it is in force
 * now. */
bool bundle_take(struct bundle *b, struct slice file);
/* Ends sessions that a bundle in force revokes. */
void bundles_revoke(struct attachments *all);
/* Starts reloads that wait. */
void bundles_reload_some(struct attachments *all);

/* bundle_names.c */
/* Replaces "bundle:NAME/FILE" by a path. Returns the path to use (policy itself, or out); NULL,
 * with why, if nothing may begin with it (bundles_object()). */
const char *bundles_resolve(const struct attachments *all, const char *policy,
        char out[MESSAGE_PATH_MAX + 1], char why[SIGNED_BUNDLE_WHY_MAX]);
/* Returns true, with why, if no sandbox may begin with the policy at this path: its bundle is not
 * in force, has expired, or has no such file any more. */
bool bundles_object(
        const struct attachments *all, const char *path, char why[SIGNED_BUNDLE_WHY_MAX]);
/* The same, but only if the bundle is in force and has no such file, expired or not. */
bool bundles_object_to_missing(
        const struct attachments *all, const char *path, char why[SIGNED_BUNDLE_WHY_MAX]);
/* Returns the bundle whose file is at this path, and the file's name; NULL: none. */
struct bundle *bundles_of_path(const struct attachments *all, const char *path, struct slice *file);
/* Returns the name of the bundle that revokes this session; NULL: none. */
const char *bundles_revoke_session(const struct attachments *all, const char *name);
/* The same for the signer and claim with this hash (attach_signed_id()). */
const char *bundles_revoke_id(
        const struct attachments *all, const uint8_t id[SIGNED_BUNDLE_DIGEST_BYTES]);
/* Returns the name of a bundle of which it is not known what it has revoked, so that signed tokens
 * are refused; NULL: none. */
const char *bundles_unknown(const struct attachments *all);
/* Returns true, with why, if this signer can make no new session: the bundle with its keys is not
 * in force or has expired. */
bool bundles_object_to_signer(const struct attachments *all, const struct config_signer *signer,
        char why[SIGNED_BUNDLE_WHY_MAX]);

#endif
