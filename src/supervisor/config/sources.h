/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources: opens the sources of credentials for the keeper. The supervisor hands out descriptors
 * and never reads a value: files are opened, programs run with a pipe as their output, variables
 * come as pipes from `vethguard run`.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_SOURCES_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_SOURCES_H

#include "supervisor/os/identity.h"
#include "vethguard/loop/loop.h"
#include "vethguard/policy/policy.h"

#define SOURCE_ERROR_MAX 512
#define SOURCE_PATH_MAX 4096

#define SOURCE_FILES_MAX 2 /* files that one source reads */

struct memory_bundle;
struct settings;
struct source_run;   /* a running program */
struct source_read;  /* a file that a child reads */
struct source_fetch; /* a service that vethguard-fetch asks */
struct source_lease; /* the lease of a value (source_lease.h) */
struct source_leases;

/* fd >= 0: the callee reads the value from it, to its end. Otherwise error is one sentence, or same
 * is set. */
struct source_result {
	int fd;
	bool same;        /* the previous value may be used for ttl_s from now on */
	uint32_t ttl_s;   /* how long the value may be used; 0: as the policy says */
	uint32_t retry_s; /* with an error: how long to wait before asking again; 0: as usual */
	const char *error;
	const char *etag; /* of a key set, for the next request; empty: it has none */
};

struct sources {
	struct loop *loop;
	const struct policy *policy; /* borrowed */
	struct identity identity;    /* of the invoking user */
	char directory[4096];        /* where exec: programs start; empty: "/" */
	int input;                   /* borrowed: standard input of exec: programs; -1: none */
	/* Pipes with values of env: sources; -1: none, or handed out. */
	int variables[POLICY_CREDENTIALS_MAX];
	struct source_run *runs[POLICY_CREDENTIALS_MAX];   /* at most one program per credential */
	struct source_read *reads[POLICY_CREDENTIALS_MAX]; /* and at most one reader */
	struct source_fetch *fetches[POLICY_CREDENTIALS_MAX];
	unsigned fetch_count;       /* fetches that run */
	struct source_leases *book; /* borrowed: the book of leases; NULL: none are kept */
	struct source_lease *leases[POLICY_CREDENTIALS_MAX];
	const struct settings *settings; /* borrowed: resolvers and known hosts; NULL: none */
	/* Borrowed: the CAs that services are verified by (os/memfd.h), as soon as they are known.
	 */
	struct memory_bundle *const *trusted;
	int mounts; /* borrowed: mount namespace of vethguard-fetch (process/role.h); -1: own */
	/* Set by sources_remember_covered(), by credential; owned; NULL: nothing is covered. */
	struct source_identity {
		dev_t device;
		ino_t inode; /* 0: there was no file */
	} (*covered)[SOURCE_FILES_MAX];
	/* id is that of sources_open(). The callee owns result's descriptor. */
	void (*on_source)(struct sources *sources, uint64_t id, const struct source_result *result);
};

void sources_init(struct sources *sources, struct loop *loop, const struct policy *policy,
        void (*on_source)(
                struct sources *sources, uint64_t id, const struct source_result *result));
/* Kills running programs and readers. No callback follows. */
void sources_stop(struct sources *sources);
/* Does the same, closes the pipes of variables, and gives the leases back. */
void sources_fini(struct sources *sources);
/* Answers through on_source, at once or when the program has ended. credential may be out of
 * range. renew, discard: as struct message_source_open has them. */
void sources_open(
        struct sources *sources, uint64_t id, uint32_t credential, bool renew, bool discard);
/* Gives the lease of the credential's value back, because nobody uses the value any more. */
void sources_give_back(struct sources *sources, uint32_t credential);
/* Calls tell with one sentence for each file that cannot serve as a credential at this moment, for
 * the user who has just named the files. Reads no value, runs no program and does not wait: a file
 * that may not be local is skipped. */
void sources_examine(const struct sources *sources, void (*tell)(void *context, const char *fault),
        void *context);

/* Remembers the file at each path. From now on a file that has replaced one of these is logged:
 * `vethguard run` covers only the remembered files, and its command could read any other. */
void sources_remember_covered(struct sources *sources);

/* source_look.c: the credential's name before the sentence, for the places that show it: a denial,
 * the keeper's log. */
#define SOURCE_FAULT_MAX (SOURCE_ERROR_MAX + POLICY_NAME_MAX + 32)
void source_name_fault(const struct sources *sources, uint32_t index, const char *error,
        char text[SOURCE_FAULT_MAX]);
/* source_file_open() without waiting; fills in path. */
int source_open_local(const struct sources *sources, struct slice name, char path[SOURCE_PATH_MAX],
        char error[SOURCE_ERROR_MAX]);
/* Logs once that the file at this path is not the one that was remembered. */
void source_look_whether_covered(
        struct sources *sources, uint32_t index, size_t k, int fd, const char *path);

/* Opens the file at path, if it may serve as a credential. wait: opens it however long that takes;
 * otherwise only if it is local (local_file.h). Returns the descriptor, -1, or LOCAL_FILE_UNKNOWN
 * (it cannot be known whether it is local); the last two with one sentence in error. */
int source_file_open(
        const struct identity *id, const char *path, bool wait, char error[SOURCE_ERROR_MAX]);

#define SOURCE_READ_MS 5000 /* for a file that is not local */
/* Starts a child that reads a credential's file, which may not be local, into a pipe.
 * sources_read_ended() is called once, with the pipe's read end. Returns NULL with the reason in
 * error if it could not be started. */
struct source_read *source_read_start(struct sources *sources, const char *path, uint64_t id,
        uint32_t index, char error[SOURCE_ERROR_MAX]);
void source_read_free(struct source_read *read);
/* Called by the reader at its end. */
void sources_read_ended(
        struct sources *sources, uint32_t index, uint64_t id, int fd, const char *error);
/* Starts the program of a credential. sources_run_ended() is called once, with the read end of its
 * output (the callee's) or -1 and a sentence. Returns NULL with the reason in error if it could not
 * be started. */
struct source_run *source_run_start(struct sources *sources,
        const struct policy_credential *credential, uint64_t id, uint32_t index,
        char error[SOURCE_ERROR_MAX]);
void source_run_free(struct source_run *run);
/* Called by the program's run at its end. */
void sources_run_ended(
        struct sources *sources, uint32_t index, uint64_t id, int fd, const char *error);

/* The files with the secrets by which a service recognizes its client. */
struct source_secrets {
	size_t count;
	int fds[SOURCE_FILES_MAX];
	char paths[SOURCE_FILES_MAX][SOURCE_PATH_MAX];
	size_t changes; /* index of the secret that the service may replace (a refresh token); equal
	                   to count: none */
};
/* Starts vethguard-fetch for a credential. secrets: copied. discard: see sources_open().
 * sources_fetch_ended() is called once. Returns NULL with the reason in error if it could not be
 * started; *retry_s: seconds until another try makes sense, or 0.
 */
struct source_fetch *source_fetch_start(struct sources *sources,
        const struct policy_credential *credential, const struct source_secrets *secrets,
        uint64_t id, uint32_t index, bool discard, char error[SOURCE_ERROR_MAX], uint32_t *retry_s);
void source_fetch_free(struct source_fetch *fetch);
/* Called at the end of a fetch. lease: the id that the service told, or empty. */
struct source_fetched {
	struct source_result result;
	bool discard, renewable;
	const char *lease;
};
void sources_fetch_ended(
        struct sources *sources, uint32_t index, uint64_t id, const struct source_fetched *fetched);
/* Opens the files with the service's secrets. Returns false with the reason in error. */
bool source_secrets_open(const struct identity *identity,
        const struct policy_credential *credential, struct source_secrets *out,
        char error[SOURCE_ERROR_MAX]);
void source_secrets_close(struct source_secrets *secrets);

#endif
