/* SPDX-License-Identifier: Apache-2.0 */
/* One end in the loop, the other held by the test: order, descriptors, bounds, and who learns
 * of the end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vethguard/ipc/peer.h"

struct side {
	struct loop *loop;
	struct ipc_peer peer;
	struct loop_timer turn;
	int other;
	int messages, ends, end_error;
	uint64_t last_id;
	size_t last_fds;
	int kept;   /* descriptor kept from a message, or -1 */
	int answer; /* what on_message returns */
	bool close_in_message, keep;
};

static uint8_t buf[MESSAGE_BYTES_MAX];

static int on_message(struct ipc_peer *peer, struct ipc_message *message)
{
	struct side *s = container_of(peer, struct side, peer);

	s->messages++;
	s->last_id = message->head.id;
	s->last_fds = message->fd_count;
	if (s->keep && message->fd_count) {
		s->kept = message->fds[0];
		message->fds[0] = -1;
	}
	if (s->close_in_message)
		ipc_peer_close(peer);
	return s->answer;
}

static void on_end(struct ipc_peer *peer, int error)
{
	struct side *s = container_of(peer, struct side, peer);

	assert_false(peer->open);
	s->ends++;
	s->end_error = error;
}

static void on_turn(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

/* Lets the loop do what is due now. */
static void turn(struct side *s)
{
	loop_timer_set(&s->turn, 2);
	assert_int_equal(loop_run(s->loop), 0);
}

static int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static int setup(void **state)
{
	struct side *s = calloc(1, sizeof(*s));
	int fds[2];

	assert_non_null(s);
	s->loop = loop_new();
	s->kept = -1;
	assert_int_equal(loop_timer_open(s->loop, &s->turn, on_turn), 0);
	assert_int_equal(ipc_pair(fds), 0);
	s->other = fds[1];
	assert_int_equal(ipc_peer_open(s->loop, &s->peer, fds[0], "test", on_message, on_end), 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct side *s = *state;

	ipc_peer_close(&s->peer);
	loop_timer_close(&s->turn);
	loop_free(s->loop);
	if (s->other >= 0)
		close(s->other);
	free(s);
	return 0;
}

static void say(struct side *s, uint64_t id)
{
	size_t n = message_empty(buf, sizeof(buf), MESSAGE_STOP, id);

	assert_int_equal(ipc_send_blocking(s->other, buf, n, NULL, 0), 0);
}

static void messages_come_in_order_beyond_one_share(void **state)
{
	struct side *s = *state;

	for (uint64_t id = 1; id <= 150; id++)
		say(s, id);
	for (int i = 0; i < 500 && s->messages < 150; i++) /* a busy machine needs more than one */
		turn(s);
	assert_int_equal(s->messages, 150);
	assert_int_equal(s->last_id, 150);
	assert_int_equal(s->ends, 0);
}

static void what_was_said_before_closing_is_heard(void **state)
{
	struct side *s = *state;
	size_t n;

	/* Unread bytes on the side that closes make the kernel report a reset first. */
	n = message_empty(buf, sizeof(buf), MESSAGE_STOP, 1);
	assert_int_equal(ipc_send(&s->peer, buf, n, NULL, 0), 0);
	say(s, 7);
	close(s->other);
	s->other = -1;
	assert_int_equal(ipc_send(&s->peer, buf, n, NULL, 0), -EPIPE);
	turn(s);
	assert_int_equal(s->messages, 1);
	assert_int_equal(s->last_id, 7);
	assert_int_equal(s->ends, 1);
	assert_int_equal(s->end_error, 0);
	turn(s);
	assert_int_equal(s->ends, 1);
}

static void refused_message_cuts_off(void **state)
{
	struct side *s = *state;

	s->answer = -EBADMSG;
	say(s, 1);
	say(s, 2);
	turn(s);
	assert_int_equal(s->messages, 1);
	assert_int_equal(s->ends, 1);
	assert_int_equal(s->end_error, -EBADMSG);
}

static void closing_from_inside_a_message(void **state)
{
	struct side *s = *state;

	s->close_in_message = true;
	say(s, 1);
	say(s, 2);
	turn(s);
	assert_int_equal(s->messages, 1);
	assert_int_equal(s->ends, 0);
}

static void malformed_heads_cut_off(void **state)
{
	struct side *s = *state;
	uint8_t short_one[3] = {0, 1, 2};

	assert_int_equal(send(s->other, short_one, sizeof(short_one), 0), sizeof(short_one));
	turn(s);
	assert_int_equal(s->messages, 0);
	assert_int_equal(s->end_error, -EBADMSG);
}

static void a_message_too_long_is_cut_off(void **state)
{
	struct side *s = *state;
	size_t n = MESSAGE_BYTES_MAX + 1;
	uint8_t *big = calloc(1, n);

	big[1] = MESSAGE_STOP;
	assert_int_equal(send(s->other, big, n, 0), n);
	free(big);
	turn(s);
	assert_int_equal(s->messages, 0);
	assert_int_equal(s->end_error, -EBADMSG);
}

static void descriptors_not_kept_are_closed(void **state)
{
	struct side *s = *state;
	int before = open_fds(), fds[3] = {0, 1, 2};
	size_t n = message_empty(buf, sizeof(buf), MESSAGE_STOP, 1);

	s->keep = true;
	assert_int_equal(ipc_send_blocking(s->other, buf, n, fds, 3), 0);
	turn(s);
	assert_int_equal(s->last_fds, 3);
	assert_int_equal(open_fds(), before + 1);
	assert_true(fcntl(s->kept, F_GETFD) & FD_CLOEXEC);
	close(s->kept);
}

static void descriptors_of_a_malformed_message_are_closed(void **state)
{
	struct side *s = *state;
	int before = open_fds(), fds[2] = {0, 1};
	uint8_t garbage[12] = {0xff};

	assert_int_equal(ipc_send_blocking(s->other, garbage, sizeof(garbage), fds, 2), 0);
	turn(s);
	assert_int_equal(s->ends, 1);
	assert_int_equal(open_fds(), before - 1); /* the peer's own socket is gone */
}

/* More descriptors than the table holds, by the kernel's own bound. */
static void too_many_descriptors_cut_off(void **state)
{
	struct side *s = *state;
	enum { MANY = 253 };
	union {
		char bytes[CMSG_SPACE(sizeof(int) * MANY)];
		struct cmsghdr align;
	} control = {0};
	size_t n = message_empty(buf, sizeof(buf), MESSAGE_STOP, 1);
	struct iovec iov = {buf, n};
	struct msghdr msg = {.msg_iov = &iov,
	        .msg_iovlen = 1,
	        .msg_control = &control,
	        .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int before = open_fds();

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * MANY);
	for (size_t i = 0; i < MANY; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &(int){1}, sizeof(int));
	assert_int_equal(sendmsg(s->other, &msg, 0), n);
	turn(s);
	assert_int_equal(s->messages, 0);
	assert_int_equal(s->end_error, -EBADMSG);
	assert_int_equal(open_fds(), before - 1);
}

static void a_full_socket_queues_in_order(void **state)
{
	struct side *s = *state;
	struct ipc_message message;
	uint64_t sent = 0;

	while (!s->peer.first) {
		size_t n = message_empty(buf, sizeof(buf), MESSAGE_STOP, ++sent);
		assert_int_equal(ipc_send(&s->peer, buf, n, (int[]){0}, 1), 0);
	}
	for (int i = 0; i < 10; i++) {
		size_t n = message_empty(buf, sizeof(buf), MESSAGE_STOP, ++sent);
		assert_int_equal(ipc_send(&s->peer, buf, n, (int[]){0}, 1), 0);
	}
	for (uint64_t id = 1; id <= sent; id++) {
		turn(s);
		assert_int_equal(ipc_receive_blocking(s->other, 1000, buf, &message), 0);
		assert_int_equal(message.head.id, id);
		assert_int_equal(message.fd_count, 1);
		close(message.fds[0]);
		if (id > 20) /* the rest is the same */
			break;
	}
	assert_int_equal(s->ends, 0);
}

static void a_reader_that_never_reads_is_cut_off(void **state)
{
	struct side *s = *state;
	static uint8_t big[MESSAGE_BYTES_MAX];
	static char text[MESSAGE_TEXT_MAX];
	struct message_text m = {slice_of(text, sizeof(text))};
	size_t n = message_text_encode(big, sizeof(big), MESSAGE_FAILED, 1, &m);
	int error = 0;

	for (int i = 0; i < 10000 && !error; i++)
		error = ipc_send(&s->peer, big, n, NULL, 0);
	assert_int_equal(error, -ENOBUFS);
	assert_int_equal(s->ends, 0); /* never from inside ipc_send */
	assert_int_equal(ipc_send(&s->peer, big, n, NULL, 0), -EPIPE);
	turn(s);
	assert_int_equal(s->ends, 1);
	assert_int_equal(s->end_error, -ENOBUFS);
}

/* Small messages with a descriptor each: a peer that does not read costs neither descriptors
 * nor memory beyond the bound. */
static void descriptors_that_nobody_takes_are_bounded(void **state)
{
	struct side *s = *state;
	size_t n = message_empty(buf, sizeof(buf), MESSAGE_STOP, 1);
	int before = open_fds(), error = 0;

	while (!error && open_fds() < before + 1000)
		error = ipc_send(&s->peer, buf, n, (int[]){0}, 1);
	assert_int_equal(error, -ENOBUFS);
	assert_int_equal(open_fds(), before + IPC_QUEUE_FDS_MAX);
	turn(s);
	assert_int_equal(s->end_error, -ENOBUFS);
	assert_int_equal(open_fds(), before - 1);
}

static void small_messages_count_with_what_they_cost(void **state)
{
	struct side *s = *state;
	size_t n = message_empty(buf, sizeof(buf), MESSAGE_STOP, 1), queued = 0;

	while (ipc_send(&s->peer, buf, n, NULL, 0) == 0)
		queued += s->peer.first != NULL;
	assert_in_range(queued, 1, IPC_QUEUE_MAX / (MESSAGE_FDS_MAX * sizeof(int)));
}

static size_t locked_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	size_t kib = 0;

	while (fgets(line, sizeof(line), f))
		(void)!sscanf(line, "VmLck: %zu kB", &kib);
	fclose(f);
	return kib;
}

static void a_secret_that_waits_is_in_locked_memory(void **state)
{
	struct side *s = *state;
	static char value[20000];
	static uint8_t bytes[32768];
	struct message_credential m = {.available = true, .value = {value, sizeof(value)}};
	struct ipc_message message;
	size_t before = locked_kib(), with;

#ifdef __SANITIZE_ADDRESS__
	skip(); /* its mlock(2) does nothing */
#endif
	assert_true(before >= MESSAGE_BYTES_MAX / 1024); /* the receive buffer */
	memset(value, 's', sizeof(value));
	while (!s->peer.first) {
		size_t n =
		        message_credential_encode(bytes, sizeof(bytes), MESSAGE_CREDENTIAL, 1, &m);
		assert_int_equal(ipc_send_secret(&s->peer, bytes, n, NULL, 0), 0);
	}
	with = locked_kib();
	assert_true(with >= before + 20);
	for (int i = 0; s->peer.first && i < 100; i++) {
		assert_int_equal(ipc_receive_blocking(s->other, 1000, buf, &message), 0);
		turn(s);
	}
	while (ipc_receive_blocking(s->other, 10, buf, &message) == 0)
		assert_int_equal(message_credential_decode(&message.body, &m), 0);
	assert_int_equal(m.value.p[m.value.n - 1], 's');
	assert_int_equal(locked_kib(), before);
}

static void sizes_out_of_bounds_harm_nobody(void **state)
{
	struct side *s = *state;
	int fds[MESSAGE_FDS_MAX + 1] = {0};

	assert_int_equal(ipc_send(&s->peer, buf, 0, NULL, 0), -EMSGSIZE);
	assert_int_equal(ipc_send(&s->peer, buf, MESSAGE_BYTES_MAX + 1, NULL, 0), -EMSGSIZE);
	assert_int_equal(ipc_send(&s->peer, buf, 10, fds, MESSAGE_FDS_MAX + 1), -EMSGSIZE);
	assert_int_equal(ipc_send_blocking(s->other, buf, 0, NULL, 0), -EMSGSIZE);
	turn(s);
	assert_int_equal(s->ends, 0);
}

static void secrets_are_wiped_after_sending(void **state)
{
	struct side *s = *state;
	struct message_credential m = {.available = true, .value = SLICE("hunter2hunter2")};
	struct ipc_message message;
	uint8_t bytes[128], zero[128] = {0};
	size_t n = message_credential_encode(bytes, sizeof(bytes), MESSAGE_CREDENTIAL, 1, &m);

	assert_int_equal(ipc_send_secret(&s->peer, bytes, n, NULL, 0), 0);
	assert_memory_equal(bytes, zero, n);
	assert_int_equal(ipc_receive_blocking(s->other, 1000, buf, &message), 0);
	assert_int_equal(message_credential_decode(&message.body, &m), 0);
	assert_true(slice_equals(m.value, SLICE("hunter2hunter2")));
}

static void blocking_receive_times_out_and_sees_the_end(void **state)
{
	struct side *s = *state;
	struct ipc_message message;

	assert_int_equal(ipc_receive_blocking(s->other, 5, buf, &message), -ETIMEDOUT);
	ipc_peer_close(&s->peer);
	assert_int_equal(ipc_receive_blocking(s->other, -1, buf, &message), -EPIPE);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(messages_come_in_order_beyond_one_share),
	        T(what_was_said_before_closing_is_heard),
	        T(refused_message_cuts_off),
	        T(closing_from_inside_a_message),
	        T(malformed_heads_cut_off),
	        T(a_message_too_long_is_cut_off),
	        T(descriptors_not_kept_are_closed),
	        T(descriptors_of_a_malformed_message_are_closed),
	        T(too_many_descriptors_cut_off),
	        T(a_full_socket_queues_in_order),
	        T(a_reader_that_never_reads_is_cut_off),
	        T(descriptors_that_nobody_takes_are_bounded),
	        T(small_messages_count_with_what_they_cost),
	        T(a_secret_that_waits_is_in_locked_memory),
	        T(sizes_out_of_bounds_harm_nobody),
	        T(secrets_are_wiped_after_sending),
	        T(blocking_receive_times_out_and_sees_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
