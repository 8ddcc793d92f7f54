/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguard-keeper: holds the root CA and the credential values of all sandboxes, and nothing else:
 * no file, no network, no privilege. Everything it knows of the outside comes from the supervisor
 * (descriptor 3); everything a worker gets goes over that worker's own socket pair.
 *
 * main() shows the order of confinement. The root CA is made, or read from the descriptor of the
 * supervisor's first message, before the jail closes, while OpenSSL can still open files; nothing
 * else was read before. Afterwards only messages of the supervisor and of the workers are handled.
 * When the supervisor sends STOP, closes the socket, or breaks the protocol, everything is wiped
 * and the program ends.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keeper/desk.h"
#include "keeper/marker.h"
#include "vethguard/base/log.h"
#include "vethguard/jail/answer.h"

#define START_TIMEOUT_MS 10000
#define EXIT_FAILED 125
#define TEXT_MESSAGE_BYTES 1024

struct keeper {
	struct loop *loop;
	struct authorities authorities;
	struct ipc_peer supervisor;
	struct marker marker;
	struct sources sources;
	struct sandboxes sandboxes;
	struct desk desk;
	struct token token;
	struct key_tokens key_tokens;
	int status;
};

static void must(const char *what, int rc)
{
	if (rc < 0)
		die(EXIT_FAILED, "%s: %s", what, strerror(-rc));
}

/* Waits for the first message; returns its id, which READY answers. root: the root CA's file, or
 * -1. */
static uint64_t await_start(int *root)
{
	static uint8_t buf[MESSAGE_BYTES_MAX];
	struct ipc_message message;

	must("no message from the supervisor",
	        ipc_receive_blocking(IPC_SUPERVISOR_FD, START_TIMEOUT_MS, buf, &message));
	if (message.head.type != MESSAGE_KEEPER_START || !reader_done(&message.body) ||
	        message.fd_count > 1)
		die(EXIT_FAILED, "the supervisor's first message is not the one expected");
	*root = message.fd_count ? message.fds[0] : -1;
	return message.head.id;
}

/* Makes a root CA if the keeper's sandboxes end with it; otherwise reads it from the file, which is
 * closed before any other message is read. */
static void open_root(struct authorities *all, int fd)
{
	const char *why = "no memory";
	int rc = fd < 0 ? authorities_lead(all, authority_new(), 0)
	                : authorities_open(all, fd, &why);

	if (rc)
		die(EXIT_FAILED, "%s", why);
	if (fd >= 0)
		close(fd);
}

static void enter_jail(void)
{
	const char *step;
	int rc = jail_enter(JAIL_KEEPER, NULL, 0, &step);

	must(step, rc);
}

static void send_text(struct keeper *keeper, enum message_type type, uint64_t id, const char *text)
{
	uint8_t message[TEXT_MESSAGE_BYTES];
	struct message_text body = {slice_from_string(text)};

	ipc_send(&keeper->supervisor, message,
	        message_text_encode(message, sizeof(message), type, id, &body), NULL, 0);
}

/* Sends FAILED under the message's id if there is no room, or no CA (why), for what it asks. */
static int refuse(struct keeper *keeper, const struct ipc_message *message, int rc, const char *why)
{
	if (rc < 0 && rc != -EBADMSG)
		send_text(keeper, MESSAGE_FAILED, message->head.id,
		        rc == -ENOKEY ? why : "The keeper has no room for another sandbox.");
	return rc == -EBADMSG ? rc : 0;
}

static int on_sandbox(struct keeper *keeper, struct ipc_message *message)
{
	int rc = sandboxes_describe(&keeper->sandboxes, message);
	char why[CA_WHY_MAX] = "";

	if (rc == 0)
		rc = sandboxes_send_root(&keeper->sandboxes, message, why);
	return refuse(keeper, message, rc, why);
}

static int here(struct ipc_peer *peer, const struct ipc_message *message)
{
	uint8_t answer[64];

	if (!reader_done(&message->body) || message->fd_count > 0)
		return -EBADMSG;
	ipc_send(peer, answer,
	        message_empty(answer, sizeof(answer), MESSAGE_KEEPER_HERE, message->head.id), NULL,
	        0);
	return 0;
}

static int on_supervisor_message(struct ipc_peer *peer, struct ipc_message *message)
{
	struct keeper *keeper = container_of(peer, struct keeper, supervisor);

	switch (message->head.type) {
	case MESSAGE_KEEPER_WORKER:
		return refuse(keeper, message, sandboxes_add(&keeper->sandboxes, message), "");
	case MESSAGE_KEEPER_SANDBOX:
		return on_sandbox(keeper, message);
	case MESSAGE_KEEPER_CHECK:
		return here(peer, message);
	case MESSAGE_KEEPER_CA_ASK:
		return desk_ask(&keeper->desk, message);
	case MESSAGE_KEEPER_TOKEN:
		return token_connect(&keeper->token, message);
	case MESSAGE_KEEPER_KEY_TOKEN:
		return key_tokens_told(&keeper->key_tokens, message);
	case MESSAGE_KEEPER_CA_KEPT:
		return desk_kept(&keeper->desk, message);
	case MESSAGE_KEEPER_CREDENTIAL:
		return sandboxes_operate(&keeper->sandboxes, message);
	case MESSAGE_SOURCE:
		return sources_on_message(&keeper->sources, message);
	case MESSAGE_DESCRIBE:
		return jail_answer(peer, message);
	case MESSAGE_STOP:
		if (!reader_done(&message->body) || message->fd_count > 0)
			return -EBADMSG;
		send_text(keeper, MESSAGE_STOPPED, message->head.id, "");
		loop_stop(keeper->loop);
		return 0;
	default:
		return -EBADMSG;
	}
}

static void on_supervisor_end(struct ipc_peer *peer, int error)
{
	struct keeper *keeper = container_of(peer, struct keeper, supervisor);

	if (error) {
		log_error("a message of the supervisor cannot be decoded: %s", strerror(-error));
		keeper->status = EXIT_FAILED;
	}
	loop_stop(keeper->loop);
}

static void serve(struct keeper *keeper, uint64_t start_id)
{
	uint8_t message[TEXT_MESSAGE_BYTES];

	must("no supervisor", ipc_peer_open(keeper->loop, &keeper->supervisor, IPC_SUPERVISOR_FD,
	                              "supervisor", on_supervisor_message, on_supervisor_end));
	token_init(&keeper->token, keeper->loop, &keeper->supervisor);
	key_tokens_init(&keeper->key_tokens, keeper->loop, &keeper->supervisor);
	keeper->sources = (struct sources){.loop = keeper->loop,
	        .supervisor = &keeper->supervisor,
	        .marker = &keeper->marker,
	        .key_tokens = &keeper->key_tokens,
	        .on_operated = sandboxes_on_operated};
	keeper->sandboxes = (struct sandboxes){.loop = keeper->loop,
	        .authorities = &keeper->authorities,
	        .token = &keeper->token,
	        .key_tokens = &keeper->key_tokens,
	        .sources = &keeper->sources};
	keeper->desk = (struct desk){.now = &keeper->authorities,
	        .sandboxes = &keeper->sandboxes,
	        .token = &keeper->token,
	        .supervisor = &keeper->supervisor};
	must("cannot report",
	        ipc_send(&keeper->supervisor, message,
	                message_empty(message, sizeof(message), MESSAGE_KEEPER_READY, start_id),
	                NULL, 0));
	must("the loop does not run", loop_run(keeper->loop));
	desk_fini(&keeper->desk);
	sandboxes_free(&keeper->sandboxes);
	token_fini(&keeper->token);
	key_tokens_fini(&keeper->key_tokens);
	ipc_peer_close(&keeper->supervisor);
}

int main(int argc, char **argv)
{
	static struct keeper keeper;
	uint64_t start_id;
	int root_file;

	log_open_role("vethguard-keeper", argc, argv, EXIT_FAILED);
	jail_start(IPC_SUPERVISOR_FD + 1);
	start_id = await_start(&root_file);
	tls_library_init();
	open_root(&keeper.authorities, root_file);
	must("no marks of values", marker_init(&keeper.marker));
	keeper.loop = loop_new();
	if (!keeper.loop)
		die(EXIT_FAILED, "no memory");
	enter_jail();
	serve(&keeper, start_id);
	loop_free(keeper.loop);
	authorities_fini(&keeper.authorities);
	marker_fini(&keeper.marker);
	return keeper.status;
}
