/* SPDX-License-Identifier: Apache-2.0 */
/* token_queue: questions to one process that has the keys of a PKCS #11 token (src/token). The
 * process gets one question at a time; the others wait. */
#ifndef VETHGUARD_SRC_KEEPER_TOKEN_QUEUE_H
#define VETHGUARD_SRC_KEEPER_TOKEN_QUEUE_H

#include "vethguard/ipc/peer.h"

#define TOKEN_SIGN_MS \
	5000 /* bound on one signature; a starting sandbox waits ten seconds at most */

struct token_queue;

/* One question, in a struct of its owner, who frees it in on_answer or after a cancellation. */
struct token_question {
	struct token_question *prev, *next;
	struct token_queue *queue; /* NULL: it is in no queue */
	uint64_t id;
	bool sent;
	uint8_t *message;
	size_t message_n;
	/* Called once, when the question has left the queue. m: the answer, with a signature or an
	 * error; NULL: why says why there is none. */
	void (*on_answer)(struct token_question *question, const struct message_token_signature *m,
	        const char *why);
};

struct token_queue {
	struct loop *loop;
	struct ipc_peer peer; /* open while there is a process */
	struct loop_timer timer;
	struct token_question *first; /* the process has the first one */
	uint64_t last_id;
	/* Called when the process is lost, before the questions are answered. why: why the process
	 * has to end; NULL: it has ended. */
	void (*on_lost)(struct token_queue *queue, const char *why);
};

void token_queue_init(struct token_queue *queue, struct loop *loop,
        void (*on_lost)(struct token_queue *queue, const char *why));
/* Takes fd, which leads to another process. Returns 0 or -errno. */
int token_queue_connect(struct token_queue *queue, int fd);
/* Returns the id for the next question that is added. */
uint64_t token_queue_next_id(struct token_queue *queue);
/* Adds the question; message (copied) is its n bytes under that id. Returns 0, or -errno and the
 * question is not asked. */
int token_queue_add(struct token_queue *queue, struct token_question *question,
        const uint8_t *message, size_t n);
/* Takes the question out. Returns false if the process has it already: on_answer follows then. */
bool token_question_cancel(struct token_question *question);
/* Closes the pair and answers all questions with why. Their owners may ask again from within, and
 * then learn at once that there is no process. */
void token_queue_lose(struct token_queue *queue, const char *why);
void token_queue_fini(struct token_queue *queue);

#endif
