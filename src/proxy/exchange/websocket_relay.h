/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket_relay: both directions of an exchange after a 101. Every frame is checked before its
 * first byte is passed on. What the sandbox sends is looked at (inflated where need be), what comes
 * back on a connection with a credential is covered.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_WEBSOCKET_RELAY_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_WEBSOCKET_RELAY_H

#include "proxy/http/websocket.h"
#include "vethguard/credential/inflate.h"
#include "vethguard/credential/store.h"

#define WEBSOCKET_VALUES_MAX 16    /* credentials looked for in what the sandbox sends */
#define WEBSOCKET_LOOK_BYTES 16384 /* unmasked at a time */

struct exchange;

struct websocket_relay {
	struct websocket out, in; /* from the sandbox, from the upstream */
	/* Out. */
	struct inflater *inflate; /* NULL: compression was not agreed on */
	struct credential_value *values[WEBSOCKET_VALUES_MAX];
	struct mask_stream streams[WEBSOCKET_VALUES_MAX]; /* of these values */
	size_t value_count;
	bool value_seen;
	uint8_t out_control[WEBSOCKET_CONTROL_MAX];
	/* Both: whether texts are texts, and a close frame until it is whole (unmasked). */
	struct utf8 out_text, in_text;
	bool no_text; /* a compressed text from the sandbox is none */
	uint8_t out_close[WEBSOCKET_CONTROL_MAX], in_close[WEBSOCKET_CONTROL_MAX];
	/* In, where a credential has to be covered. */
	uint8_t in_control[WEBSOCKET_CONTROL_MAX];
	bool verbatim;              /* the frame goes out with its own head */
	bool owes_head;             /* ... which has not gone out yet */
	bool begun;                 /* a fragment of the message has gone out */
	uint8_t kind;               /* of the message in fragments: text or binary */
	struct mask_stream control; /* what control frames hold, one after the other */
	struct mask_stream wire;    /* what all frames hold, in the order they came in */
	bool apart;                 /* the wire's text does not end as the messages' does */
	uint16_t code;              /* what to close with, and why: websocket_redact() */
	const char *error;
};

/* The relay of an exchange that goes over to frames. NULL: no memory. */
struct websocket_relay *websocket_relay_new(
        struct exchange *ex, const struct websocket_deflate *deflate);
void websocket_relay_free(struct websocket_relay *r);
/* Bytes as they come. The exchange may be over and gone afterwards: a frame was wrong, and both
 * sides were told so with a close frame where one could be put. */
void websocket_from_sandbox(struct exchange *ex, const uint8_t *p, size_t n);
void websocket_from_upstream(struct exchange *ex, const uint8_t *p, size_t n);
/* The upstream has ended: what is still kept back belongs to a message that never becomes whole. */
void websocket_upstream_ended(struct exchange *ex);
void websocket_to_sandbox(struct exchange *ex, const uint8_t *p, size_t n);

/* --- websocket_passage.c --- */

/* A run of bytes that is passed on as it came, but not before it was looked at. A close frame waits
 * until it is whole. */
struct websocket_passage {
	struct websocket *w;
	uint8_t *close; /* what a close frame holds */
	void (*send)(struct exchange *ex, const uint8_t *p, size_t n);
	const uint8_t *p;
	size_t n, at;
	size_t from;    /* what lies between here and at is not sent yet */
	size_t frame;   /* where the frame begins, while `unsent` */
	bool unsent;    /* nothing of the frame has been sent */
	bool owes_head; /* its head began in an earlier run, and is sent with what follows */
	uint16_t code;  /* what to close with, where an error is told */
	const char *error;
};

/* The next step. *used: its bytes, which end at passage->at. WEBSOCKET_BAD: error tells why. */
enum websocket_step websocket_passage_next(
        struct exchange *ex, struct websocket_passage *passage, size_t *used);
/* The step was looked at and is right. */
void websocket_passage_accept(struct exchange *ex, struct websocket_passage *passage);
/* All steps were. */
void websocket_passage_end(struct exchange *ex, struct websocket_passage *passage);
/* The frame is not right: what lies before it is sent. True: another frame may be put there. */
bool websocket_passage_break(struct exchange *ex, struct websocket_passage *passage);

/* --- exchange/websocket_inspect.c --- */

/* Unmasked content that waits to be looked at together: many small frames cost one search. */
struct websocket_inspection {
	size_t n;
	uint8_t p[WEBSOCKET_LOOK_BYTES];
};

/* Content of the sandbox's frame that websocket_next() has just told of; n 0 at the end of a
 * compressed message whose last frame is empty. 0, an error of inflater_feed(), or -EILSEQ: a text
 * that is no UTF-8. */
int websocket_inspect(
        struct exchange *ex, struct websocket_inspection *l, const uint8_t *p, size_t n);
void websocket_inspect_gathered(struct exchange *ex, struct websocket_inspection *l);

/* --- exchange/websocket_redact.c --- */

/* The head of the upstream's frame that websocket_next() has just told of. */
void websocket_redact_begin(struct exchange *ex);
/* Its content, or n 0 where it has none. 0; -EPROTO: relay->error and code tell what is wrong;
 * -EACCES: the credential is being guessed; -errno: no memory. */
int websocket_redact(struct exchange *ex, const uint8_t *p, size_t n);
/* What was kept back of a message goes out before more of it comes: exchange_release_held(). */
void websocket_pass_released(struct exchange *ex, const uint8_t *p, size_t n);

#endif
