/* SPDX-License-Identifier: Apache-2.0 */
/* ca: the keeper's CAs as the supervisor sees them, and their changes. Persistent only. */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_CA_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_CA_H

#include "vethguard/wire/message.h"
#include "supervisor/os/clock_watch.h"

struct ipc_message;
struct supervisor;

/* Between two looks at what is due. */
#define CA_CHECK_S 3600
/* Of a message with the keeper's answer. */
#define CA_ANSWER_MAX (4 * MESSAGE_PEM_MAX)

/* error: why nothing was done, or NULL; then what the keeper has is in ca_view(). changed: it was.
 */
typedef void (*ca_told)(void *context, const char *error, bool changed);

struct ca_life {
	struct clock_watch clock;
	struct config_ca config;
	uint64_t id; /* of the question that is not answered yet; 0: none */
	enum message_ca_what what;
	ca_told told; /* may be NULL */
	void *context;
	bool check_due; /* another check follows the question */
	bool paused;    /* another daemon may be the one that changes them */
	bool known;     /* the keeper has answered once */
	bool ready;     /* the keeper knows whether a token's key can be used */
	bool trying;    /* the keeper is finding out whether a token's key can be used */
	struct message_keeper_ca view; /* points into message */
	uint8_t message[CA_ANSWER_MAX];
	char notes[MESSAGE_WHAT_MAX + 1]; /* as last logged */
};

/* Starts the regular checks. Returns 0 or -errno. */
int ca_open(struct supervisor *sv);
void ca_close(struct supervisor *sv);
/* The configuration was read for a reload of all; a check follows if the keeper runs. */
void ca_configure(struct supervisor *sv, const struct config_ca *config);
/* Asks the keeper to check its CAs, now or after the question that is under way. */
void ca_check_soon(struct supervisor *sv);
/* Another daemon is about to take over, or has; false: this one goes on. */
void ca_pause(struct supervisor *sv, bool paused);
/* Asks the keeper for a change. told is called once, later. Returns 0; -EBUSY: another one is under
 * way; -EAGAIN: another daemon takes over, or the keeper does not run; -errno. */
int ca_ask(struct supervisor *sv, const struct message_keeper_ca_ask *ask, ca_told told,
        void *context);
/* What the keeper has; NULL: not known yet. */
const struct message_keeper_ca *ca_view(const struct supervisor *sv);
/* True if the current CA is the one for a sandbox that knows this root, as message_keeper_worker
 * names it. False also if that is not known yet. */
bool ca_leads(const struct supervisor *sv, struct slice root);
/* keeper.c calls these: a keeper was started; it answered; it is gone. */
int ca_begin(struct supervisor *sv);
int ca_answered(struct supervisor *sv, struct ipc_message *message);
void ca_lost(struct supervisor *sv);

#endif
