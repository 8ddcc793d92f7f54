/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inquiry: vethguard answers requests for POLICY_OWN_HOST itself: why a request was refused, what
 * the policy allows, what has become of requests that a person was asked about, and rules that the
 * sandbox proposes. The answers hold nothing of other sandboxes, of the host, or about where
 * credentials come from.
 */
#ifndef VETHGUARD_SRC_PROXY_INQUIRY_INQUIRY_H
#define VETHGUARD_SRC_PROXY_INQUIRY_INQUIRY_H

#include "vethguard/base/rate.h"
#include "vethguard/base/slice.h"

#define INQUIRY_BASE "https://vethguard.internal"
#define INQUIRY_DENIALS_MAX 64       /* refused requests that are remembered */
#define INQUIRY_ASKS_MAX 64          /* decided requests that are remembered */
#define INQUIRY_RULES_MAX 256        /* rules in one answer */
#define INQUIRY_BODY_MAX 4096        /* bytes of a proposal: PROPOSAL_BYTES_MAX */
#define INQUIRY_PROPOSAL_GAP_MS 2000 /* between proposals */

struct exchange;
struct inquiry_notes;
struct page;
struct proxy;

/* The proxy's part. */
struct inquiry {
	struct rate rate;            /* of questions */
	int64_t next_proposal_ms;    /* clock_monotonic_ms(): until then proposals are refused */
	struct inquiry_notes *notes; /* owned; NULL: nothing was noted yet */
};

void inquiry_open(struct proxy *proxy);
void inquiry_close(struct proxy *proxy);
/* Answers an allowed request for POLICY_OWN_HOST, or holds its body first. ex may be freed. */
void inquiry_answer(struct exchange *ex);

/* inquiry_notes.c */

/* Remembers a refused request. Call this once its event is recorded. */
void inquiry_note_denial(const struct exchange *ex);
/* Remembers what was decided about a request that has waited. */
void inquiry_note_ask(const struct exchange *ex, bool approved, const char *text);
/* Remembers a proposal that was sent to the supervisor. */
void inquiry_note_proposal(struct proxy *proxy, uint64_t id, struct slice to);
/* Each writes what is known under this id; id 0: all that is known, as one object each. Returns
 * false if nothing is known under this id. */
bool inquiry_put_denials(struct proxy *proxy, struct page *page, uint64_t id);
bool inquiry_put_asks(struct proxy *proxy, struct page *page, uint64_t id);
bool inquiry_put_proposals(struct proxy *proxy, struct page *page, uint64_t id);
void inquiry_notes_free(struct inquiry_notes *notes);

/* inquiry_policy.c: what the sandbox may do by its policy. */
void inquiry_put_policy(const struct proxy *proxy, struct page *page);

#endif
