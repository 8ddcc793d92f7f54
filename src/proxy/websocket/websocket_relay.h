/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket_relay: both directions of an exchange after a 101. Every frame is checked before its
 * first byte is passed on. What the sandbox sends is searched (inflated if need be); what an
 * upstream that was given a credential sends is masked.
 */
#ifndef VETHGUARD_SRC_PROXY_WEBSOCKET_WEBSOCKET_RELAY_H
#define VETHGUARD_SRC_PROXY_WEBSOCKET_WEBSOCKET_RELAY_H

#include "proxy/http/websocket.h"
#include "vethguard/credential/inflate.h"
#include "vethguard/credential/store.h"

#define WEBSOCKET_VALUES_MAX 16    /* credentials searched for in what the sandbox sends */
#define WEBSOCKET_LOOK_BYTES 16384 /* unmasked per search */

struct exchange;
struct websocket_fill;

struct websocket_relay {
	struct websocket out, in; /* from the sandbox, from the upstream */
	/* From the sandbox. */
	struct inflater *inflate;    /* NULL: no compression was agreed on */
	struct websocket_fill *fill; /* NULL: no placeholder is replaced in messages */
	struct credential_value *values[WEBSOCKET_VALUES_MAX];
	struct mask_stream streams[WEBSOCKET_VALUES_MAX]; /* one for each of these values */
	size_t value_count;
	bool value_seen;
	uint8_t out_control[WEBSOCKET_CONTROL_MAX];
	/* Both directions: UTF-8 state of text messages, and a close frame (unmasked) until it is
	 * complete. */
	struct utf8 out_text, in_text;
	bool no_text; /* a compressed text message from the sandbox is not UTF-8 */
	uint8_t out_close[WEBSOCKET_CONTROL_MAX], in_close[WEBSOCKET_CONTROL_MAX];
	/* From the upstream, if a credential has to be masked. */
	uint8_t in_control[WEBSOCKET_CONTROL_MAX];
	bool verbatim;              /* the frame is passed on with its own head */
	bool owes_head;             /* ... which was not sent yet */
	bool begun;                 /* a fragment of the message was sent */
	uint8_t kind;               /* of the fragmented message: text or binary */
	struct mask_stream control; /* searches control frames, one after the other */
	struct mask_stream wire;    /* searches all frames, in the order they came in */
	bool apart;                 /* the wire's text does not end as the messages' text does */
	uint16_t code;              /* close code for the error: websocket_redact() */
	const char *error;
};

/* Makes the relay of an exchange that switches to frames. Returns NULL if there is no memory. */
struct websocket_relay *websocket_relay_new(
        struct exchange *ex, const struct websocket_deflate *deflate);
void websocket_relay_free(struct websocket_relay *r);
/* Takes bytes as they come. The exchange may be over and freed afterwards: a frame was wrong, and
 * both sides were told with a close frame if one could be put there. */
void websocket_from_sandbox(struct exchange *ex, const uint8_t *p, size_t n);
void websocket_from_upstream(struct exchange *ex, const uint8_t *p, size_t n);
/* The upstream has ended: what is still kept back belongs to a message that never becomes
 * complete. */
void websocket_upstream_ended(struct exchange *ex);
/* Ends the relay because of a limit of the policy. ex is freed afterwards. */
void websocket_end_limited(struct exchange *ex, const char *detail);
void websocket_to_sandbox(struct exchange *ex, const uint8_t *p, size_t n);

/* --- websocket_passage.c --- */

/* A run of bytes that is passed on as it came, but only after it was checked. A close frame waits
 * until it is complete. */
struct websocket_passage {
	struct websocket *w;
	uint8_t *close; /* content of a close frame */
	void (*send)(struct exchange *ex, const uint8_t *p, size_t n);
	const uint8_t *p;
	size_t n, at;
	size_t from;    /* bytes between from and at are not sent yet */
	size_t frame;   /* where the frame begins; valid while `unsent` */
	bool unsent;    /* nothing of the frame was sent */
	bool owes_head; /* its head began in an earlier run and is sent with what follows */
	uint16_t code;  /* close code; set together with error */
	const char *error;
};

/* Takes the next step. *used: its bytes, which end at passage->at. WEBSOCKET_BAD: error tells
 * why. */
enum websocket_step websocket_passage_next(
        struct exchange *ex, struct websocket_passage *passage, size_t *used);
/* Accepts the step: it was checked and is right. */
void websocket_passage_accept(struct exchange *ex, struct websocket_passage *passage);
/* Leaves out the step's bytes, and sends what is before them. The caller sends the frame's content
 * in another frame. */
void websocket_passage_skip(struct exchange *ex, struct websocket_passage *passage,
        enum websocket_step step, size_t used);
/* Ends the run: all its steps were accepted. */
void websocket_passage_end(struct exchange *ex, struct websocket_passage *passage);
/* The frame is wrong: sends what is before it. True: another frame may be put in its place. */
bool websocket_passage_break(struct exchange *ex, struct websocket_passage *passage);

/* --- websocket/websocket_inspect.c --- */

/* Unmasked content that is gathered to be searched together: many small frames cost one search. */
struct websocket_inspection {
	size_t n;
	uint8_t p[WEBSOCKET_LOOK_BYTES];
};

/* Searches content of the sandbox's frame that websocket_next() has just reported; n is 0 at the
 * end of a compressed message whose last frame is empty. Returns 0, an error of inflater_feed(), or
 * -EILSEQ if a text message is not UTF-8. */
int websocket_inspect(
        struct exchange *ex, struct websocket_inspection *l, const uint8_t *p, size_t n);
void websocket_inspect_gathered(struct exchange *ex, struct websocket_inspection *l);
/* Searches a piece of a message that does not leave as it came (websocket_fill.c). */
void websocket_inspect_text(struct exchange *ex, const uint8_t *p, size_t n);

/* --- websocket/websocket_redact.c --- */

/* Takes the head of the upstream's frame that websocket_next() has just reported. */
void websocket_redact_begin(struct exchange *ex);
/* Takes its content; n is 0 if it has none. Returns 0; -EPROTO with relay->error and code set;
 * -EACCES if the credential is being guessed; or -errno (no memory). */
int websocket_redact(struct exchange *ex, const uint8_t *p, size_t n);
/* Sends what was kept back of a message before more of it comes: exchange_release_held(). */
void websocket_pass_released(struct exchange *ex, const uint8_t *p, size_t n);

#endif
