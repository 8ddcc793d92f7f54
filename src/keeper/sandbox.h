/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: one worker that this keeper serves; for the files that implement sandboxes.h. */
#ifndef VETHGUARD_SRC_KEEPER_SANDBOX_H
#define VETHGUARD_SRC_KEEPER_SANDBOX_H

#include "keeper/sandboxes.h"

struct early {
	uint64_t id;
	uint32_t credential;
};

struct sandbox {
	struct sandbox *prev, *next;
	struct sandboxes *all;
	struct ipc_peer worker;
	struct ca *intermediate;            /* NULL: no CA could sign it */
	struct authority *authority;        /* a reference: what signed it; NULL: none did */
	uint8_t root[CA_FINGERPRINT_BYTES]; /* the root that the sandbox knows, if known */
	bool root_known;
	struct token_job *job;       /* its next intermediate is being signed by a token */
	struct authority *job_under; /* the CA of that job: a reference */
	char *names;                 /* what its intermediate may sign for; owned; NULL: anything */
	bool waits;                  /* it has no intermediate until it is described */
	uint64_t ca_question;        /* id of the worker's question for its CA; 0: not asked yet */
	uint64_t request;            /* id of the message that described it */
	bool told;                   /* the supervisor knows its root */
	uint64_t id;
	uint64_t generation; /* of its sources */
	char name[MESSAGE_NAME_MAX + 1];
	char label[MESSAGE_NAME_MAX + 32];
	bool described;
	struct early *early; /* EARLY_MAX entries; NULL: none */
	uint32_t early_count;
	uint64_t early_generation;
	uint32_t source_count;
	struct source *sources;
	struct sandbox_signature *signatures; /* that its worker waits for */
	size_t signature_count;
};

/* sandboxes.c. Returns the sandbox with this id, or NULL. */
struct sandbox *sandboxes_find(const struct sandboxes *all, uint64_t id);

enum sandbox_made {
	SANDBOX_MADE,
	SANDBOX_MADE_LATER, /* a token is signing it; worker and supervisor are told later */
	SANDBOX_NOT_MADE,   /* there is no CA, or the CA cannot sign */
};
/* sandbox_ca.c. Makes an intermediate under the CA for this sandbox. The earlier one stays until
 * the new one is there. why: the reason for NOT_MADE, otherwise "". */
enum sandbox_made sandbox_make_intermediate(struct sandbox *sandbox, char why[CA_WHY_MAX]);
/* What its intermediate may sign for, from now on; empty: anything. An intermediate for something
 * else is forgotten. Returns 0 or -ENOMEM. */
int sandbox_take_names(struct sandbox *sandbox, struct slice names);
/* Gives up the token's job for the sandbox: its result is not wanted any more. */
void sandbox_forget_job(struct sandbox *sandbox);
/* sandbox_sign.c. Handles MESSAGE_CREDENTIAL_SIGN. Returns 0 or -EBADMSG. */
int sandbox_on_sign(struct sandbox *sandbox, struct ipc_message *message);
/* The worker is gone, or will ask again under another policy: nobody waits for these signatures. */
void sandbox_forget_signatures(struct sandbox *sandbox);
/* Handles MESSAGE_CA_GET. Returns 0 or -errno. */
int sandbox_on_ca_get(struct sandbox *sandbox, const struct ipc_message *message);

#endif
