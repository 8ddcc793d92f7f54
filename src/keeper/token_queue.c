/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that does not answer in time is given up: all questions fail, the pair is closed, and
 * the supervisor ends the process, because nothing else interrupts a module's call.
 */
#include "keeper/token_queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

static void leave(struct token_question *question)
{
	DL_DELETE(question->queue->first, question);
	question->queue = NULL;
	free(question->message);
	question->message = NULL;
}

static void answer(
        struct token_question *question, const struct message_token_signature *m, const char *why)
{
	leave(question);
	question->on_answer(question, m, why);
}

static int send_first(struct token_queue *queue)
{
	struct token_question *first = queue->first;

	first->sent = true;
	loop_timer_set(&queue->timer, TOKEN_SIGN_MS);
	return ipc_send(&queue->peer, first->message, first->message_n, NULL, 0);
}

void token_queue_lose(struct token_queue *queue, const char *why)
{
	ipc_peer_close(&queue->peer);
	loop_timer_cancel(&queue->timer);
	while (queue->first)
		answer(queue->first, NULL, why);
}

static void on_late(struct loop_timer *timer)
{
	struct token_queue *queue = container_of(timer, struct token_queue, timer);
	char why[128];

	snprintf(why, sizeof(why), "the token has not signed within %d seconds",
	        TOKEN_SIGN_MS / 1000);
	queue->on_lost(queue, why);
	token_queue_lose(queue, why);
}

static void on_end(struct ipc_peer *peer, int error)
{
	struct token_queue *queue = container_of(peer, struct token_queue, peer);

	queue->on_lost(queue, error == -EBADMSG ? "it broke the protocol with the keeper" : NULL);
	token_queue_lose(queue, "the token's process has ended");
}

static int on_message(struct ipc_peer *peer, struct ipc_message *message)
{
	struct token_queue *queue = container_of(peer, struct token_queue, peer);
	struct token_question *first = queue->first;
	struct message_token_signature m;

	if (message->head.type != MESSAGE_TOKEN_SIGNATURE || message->fd_count > 0 || !first ||
	        first->id != message->head.id ||
	        message_token_signature_decode(&message->body, &m) < 0)
		return -EBADMSG;
	loop_timer_cancel(&queue->timer);
	answer(first, &m, NULL);
	return peer->open && queue->first && !queue->first->sent ? send_first(queue) : 0;
}

void token_queue_init(struct token_queue *queue, struct loop *loop,
        void (*on_lost)(struct token_queue *queue, const char *why))
{
	*queue = (struct token_queue){.loop = loop, .on_lost = on_lost};
}

int token_queue_connect(struct token_queue *queue, int fd)
{
	int rc = 0;

	if (queue->peer.open)
		token_queue_lose(queue, "another process speaks to the token now");
	if (!queue->timer.event)
		rc = loop_timer_open(queue->loop, &queue->timer, on_late);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	return ipc_peer_open(queue->loop, &queue->peer, fd, "token", on_message, on_end);
}

uint64_t token_queue_next_id(struct token_queue *queue)
{
	return ++queue->last_id;
}

int token_queue_add(struct token_queue *queue, struct token_question *question,
        const uint8_t *message, size_t n)
{
	int rc = 0;

	if (!queue->peer.open)
		return -ENOTCONN;
	question->message = n ? malloc(n) : NULL;
	if (!question->message)
		return -ENOMEM;
	memcpy(question->message, message, n);
	question->message_n = n;
	question->queue = queue;
	question->id = queue->last_id;
	question->sent = false;
	DL_APPEND(queue->first, question);
	if (queue->first == question)
		rc = send_first(queue);
	if (rc < 0) {
		leave(question);
		if (!queue->first)
			loop_timer_cancel(&queue->timer);
	}
	return rc;
}

bool token_question_cancel(struct token_question *question)
{
	if (question->queue && question->sent)
		return false;
	if (question->queue)
		leave(question);
	return true;
}

void token_queue_fini(struct token_queue *queue)
{
	token_queue_lose(queue, "the keeper ends");
	loop_timer_close(&queue->timer);
}
