/* SPDX-License-Identifier: Apache-2.0 */
/* attach_transaction: a request to attach a sandbox, on its way through attach.c, check.c and
 * locate.c. Each step returns true if the next may follow; otherwise it has refused the request. */
#ifndef VETHGUARD_SRC_SUPERVISOR_ATTACH_TRANSACTION_H
#define VETHGUARD_SRC_SUPERVISOR_ATTACH_TRANSACTION_H

#include "supervisor/attach/attachment.h"

/* A request in progress. What it holds is closed if it is refused. */
struct attach_transaction {
	struct attachments *all;
	const struct attach_request *request;
	struct attachment *attachment;
	int netns;
	char interface[IFNAMSIZ]; /* its own name: attach_transaction_check_request() */
	struct gate_divert divert;
	enum attach_status status;
	char text[SANDBOX_FAILURE_MAX];
	char *diagnostics; /* owned */
	const struct settings_files *files;
	bool remote;                   /* a child has to read the policy first */
	struct attachment *prepared;   /* to claim: what is claimed */
	const struct attachment *like; /* to claim: see struct attach_request; NULL: none */
};

/* Returns false, after setting status and a sentence for the caller. */
bool attach_transaction_refuse(struct attach_transaction *t, enum attach_status status,
        const char *format, ...) __attribute__((format(printf, 3, 4)));

/* check.c: checks whether such a sandbox is possible at all; whether there is room for it, and its
 * name and interface are free. */
bool attach_transaction_check_request(struct attach_transaction *t);
bool attach_transaction_check_room(struct attach_transaction *t);
/* locate.c: finds the target and registers it for this attachment. Fills in t->netns, or t->divert
 * and its target. */
bool attach_transaction_find_target(struct attach_transaction *t);
/* prepared.c: makes the gate, and writes its state. */
bool attach_transaction_make_prepared(struct attach_transaction *t);
/* claim.c: finds what is to be claimed; writes the claim, which is the last that can fail; takes it
 * over and answers. */
bool attach_transaction_find_prepared(struct attach_transaction *t);
bool attach_transaction_write_claim(struct attach_transaction *t);
void attach_transaction_claim(struct attach_transaction *t, attach_done done, void *context);

#endif
