/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and records that a role may send, sent wrongly: to the supervisor on descriptor 3, by a
 * worker also to the keeper, and into the ring that the recorder reads. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hostile.h"
#include "vethguard/ipc/ring.h"
#include "vethguard/wire/message.h"

#define FDS_END 64
#define MANY_FDS 253 /* the most that Linux carries (SCM_MAX_FD) */
#define FLOOD 20000

static uint8_t message[MESSAGE_BYTES_MAX + 4096];

/* One datagram with copies of standard error's descriptor. Waits for room, as a hostile sender
 * would. */
static long say(int fd, size_t n, size_t fd_count)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * MANY_FDS)];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {message, n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct pollfd room = {.fd = fd, .events = POLLOUT};

	if (fd_count) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		for (size_t i = 0; i < fd_count; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &(int){STDERR_FILENO}, sizeof(int));
	}
	for (;;) {
		long sent = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent >= 0 || errno != EAGAIN)
			return sent;
		if (poll(&room, 1, -1) < 0)
			return -1;
	}
}

/* Type and id, with extra bytes of zero behind. */
static long say_type(int fd, unsigned type, uint64_t id, size_t extra, size_t fd_count)
{
	size_t n = message_empty(message, sizeof(message), MESSAGE_STOP, id);

	memset(message + n, 0, extra);
	message[0] = (uint8_t)(type >> 8);
	message[1] = (uint8_t)type;
	return say(fd, n + extra, fd_count);
}

static int supervisor(void)
{
	return HOSTILE_SUPERVISOR_FD;
}

/* A message that the role may send after it serves, well-formed. */
static unsigned right_type(void)
{
	return MESSAGE_FAILED;
}

#define TO(whom, prefix)                                                        \
	static long prefix##_nothing(void)                                      \
	{                                                                       \
		return say(whom(), 0, 0);                                       \
	}                                                                       \
	static long prefix##_cut_head(void)                                     \
	{                                                                       \
		message[0] = 0, message[1] = MESSAGE_FAILED;                    \
		return say(whom(), 3, 0);                                       \
	}                                                                       \
	static long prefix##_cut_body(void)                                     \
	{                                                                       \
		return say_type(whom(), right_type(), 0, 2, 0);                 \
	}                                                                       \
	static long prefix##_unknown(void)                                      \
	{                                                                       \
		return say_type(whom(), 0xffff, 0, 0, 0);                       \
	}                                                                       \
	static long prefix##_zero(void)                                         \
	{                                                                       \
		return say_type(whom(), 0, 0, 0, 0);                            \
	}                                                                       \
	static long prefix##_other_way(void)                                    \
	{                                                                       \
		return say_type(whom(), MESSAGE_STOP, 1, 0, 0);                 \
	}                                                                       \
	static long prefix##_not_asked(void)                                    \
	{                                                                       \
		return say_type(whom(), MESSAGE_STOPPED, 1, 4, 0);              \
	}                                                                       \
	static long prefix##_of_another(void)                                   \
	{                                                                       \
		return say_type(whom(), MESSAGE_RUN_START, 1, 0, 1);            \
	}                                                                       \
	static long prefix##_trailing(void)                                     \
	{                                                                       \
		return say_type(whom(), right_type(), 0, 5, 0);                 \
	}                                                                       \
	static long prefix##_oversized(void)                                    \
	{                                                                       \
		return say_type(whom(), right_type(), 0, MESSAGE_BYTES_MAX, 0); \
	}                                                                       \
	static long prefix##_one_fd(void)                                       \
	{                                                                       \
		return say_type(whom(), right_type(), 0, 4, 1);                 \
	}                                                                       \
	static long prefix##_many_fds(void)                                     \
	{                                                                       \
		return say_type(whom(), right_type(), 0, 4, MANY_FDS);          \
	}

TO(supervisor, s)
TO(hostile_keeper_fd, k)

/* Every message of it is one that this role may send: the number alone is wrong. */
static long failed_flood(void)
{
	for (unsigned i = 0; i < FLOOD; i++)
		if (say_type(HOSTILE_SUPERVISOR_FD, MESSAGE_FAILED, i, 4, 0) < 0)
			return -1;
	return 0;
}

/* Connections into the sandbox: more than one message may ask for; of a port that no policy
 * exposes, which is refused, without end; and other sandboxes without end. */
static long reach_beyond(void)
{
	const struct message_reach m = {8080, MESSAGE_REACH_MAX};
	size_t n = message_reach_encode(message, sizeof(message), MESSAGE_WORKER_REACH, 1, &m);

	message[n - 1]++;
	return say(HOSTILE_SUPERVISOR_FD, n, 0);
}
static long reach_flood(void)
{
	const struct message_reach m = {22, MESSAGE_REACH_MAX};
	size_t n;

	for (unsigned i = 0; i < FLOOD; i++) {
		n = message_reach_encode(message, sizeof(message), MESSAGE_WORKER_REACH, i, &m);
		if (say(HOSTILE_SUPERVISOR_FD, n, 0) < 0)
			return -1;
	}
	return 0;
}
static long call_flood(void)
{
	const struct message_call m = {SLICE("other"), 8080};
	size_t n;

	for (unsigned i = 0; i < FLOOD; i++) {
		n = message_call_encode(message, sizeof(message), MESSAGE_WORKER_CALL, i, &m);
		if (say(HOSTILE_SUPERVISOR_FD, n, 0) < 0)
			return -1;
	}
	return 0;
}

/* UDP sockets: one is closed that there never was; and at addresses that are not the gateway's,
 * without end. */
static long associate_end(void)
{
	return say_type(HOSTILE_SUPERVISOR_FD, MESSAGE_WORKER_ASSOCIATE_END, 0, 0, 0);
}
static long associate_flood(void)
{
	const struct message_worker_associate m = {{4, {127, 0, 0, 1}}};
	size_t n;

	for (unsigned i = 0; i < FLOOD; i++) {
		n = message_worker_associate_encode(
		        message, sizeof(message), MESSAGE_WORKER_ASSOCIATE, i, &m);
		if (say(HOSTILE_SUPERVISOR_FD, n, 0) < 0)
			return -1;
	}
	return 0;
}

static long ready_again(void)
{
	return say_type(HOSTILE_SUPERVISOR_FD, MESSAGE_WORKER_READY, hostile_last_id(), 0, 0);
}
static long ready_keeper(void)
{
	return say_type(HOSTILE_SUPERVISOR_FD, MESSAGE_KEEPER_ROOT, UINT64_MAX, 0, 0);
}
static long ready_recorder(void)
{
	return say_type(HOSTILE_SUPERVISOR_FD, MESSAGE_RECORDER_READY, 1, 0, 0);
}
/* A request of a number that was never given. */
static long taken_ahead(void)
{
	return say_type(HOSTILE_SUPERVISOR_FD, MESSAGE_RECORDER_TAKEN, UINT64_MAX, 0, 0);
}
static long summary_ahead(void)
{
	return say_type(HOSTILE_SUPERVISOR_FD, MESSAGE_RECORDER_SUMMARY, UINT64_MAX, 60, 0);
}

static long source_of(uint64_t sandbox, uint32_t credential)
{
	struct message_source_open m = {
	        .sandbox_id = sandbox, .credential = credential, .generation = 1};
	size_t n =
	        message_source_open_encode(message, sizeof(message), MESSAGE_SOURCE_OPEN, 77, &m);

	return say(HOSTILE_SUPERVISOR_FD, n, 0);
}
/* Answered with a refusal; harms nobody, so the keeper lives. */
static long source_of_nobody(void)
{
	return source_of(UINT64_MAX, 0);
}
static long source_beyond(void)
{
	for (uint64_t id = 1; id < 16; id++)
		if (source_of(id, POLICY_CREDENTIALS_MAX - 1) < 0)
			return -1;
	return 0;
}

static long stall_flood(void)
{
	for (unsigned i = 0; i < FLOOD; i++)
		if (say_type(HOSTILE_SUPERVISOR_FD, MESSAGE_RECORDER_STALLED, i, 4, 0) < 0 ||
		        say_type(HOSTILE_SUPERVISOR_FD, MESSAGE_RECORDER_FLOWING, i, 0, 0) < 0)
			return -1;
	return 0;
}

static long gateway_ready(void)
{
	return say_type(HOSTILE_SUPERVISOR_FD, MESSAGE_GATEWAY_READY, hostile_last_id(), 0, 0);
}

static long enter(uint64_t id, size_t cut)
{
	const struct message_gateway_enter m = {
	        .sandbox_id = id, .source = {.family = 4}, .source_port = 1};
	size_t n = message_gateway_enter_encode(
	        message, sizeof(message), MESSAGE_GATEWAY_ENTER, id, &m);

	return say(HOSTILE_SUPERVISOR_FD, n - cut, 0);
}
/* Answered with a refusal, and without a connection. */
static long enter_nobody(void)
{
	for (uint64_t id = 0; id < 100; id++)
		if (enter(id, 0) < 0)
			return -1;
	return enter(UINT64_MAX, 0);
}
static long enter_cut(void)
{
	return enter(1, 1);
}

/* Hands over what is no client's connection, or nothing. */
static long hand_over(enum message_handed handed, size_t fd_count)
{
	const struct message_gateway_enter m = {
	        .sandbox_id = UINT64_MAX, .source = {.family = 4}, .handover = {.handed = handed}};

	return say(HOSTILE_SUPERVISOR_FD,
	        message_gateway_enter_encode(
	                message, sizeof(message), MESSAGE_GATEWAY_ENTER, 1, &m),
	        fd_count);
}
static long hand_over_no_client(void)
{
	return hand_over(MESSAGE_HANDED_PROXY, 1);
}
static long hand_over_nothing(void)
{
	return hand_over(MESSAGE_HANDED_SOCKS, 0);
}
static long guess_with_descriptor(void)
{
	return say_type(HOSTILE_SUPERVISOR_FD, MESSAGE_GATEWAY_GUESSES, 1, 29, 1);
}
static long enter_flood(void)
{
	for (unsigned i = 0; i < FLOOD; i++)
		if (enter(UINT64_MAX, 0) < 0)
			return -1;
	return 0;
}

/* A token that nobody has signed, and one of a form that no token has: the supervisor verifies them
 * itself. */
static long tokens(unsigned count)
{
	static const char *const texts[] = {
	        "eyJhbGciOiJub25lIn0.eyJpc3MiOiJhIn0.AAAA", "not a token", "..", "e30.e30.e30"};

	for (unsigned i = 0; i < count; i++) {
		const struct message_gateway_token m = {
		        {.family = 4}, slice_from_string(texts[i % 4])};
		size_t n = message_gateway_token_encode(
		        message, sizeof(message), MESSAGE_GATEWAY_TOKEN, i, &m);

		if (say(HOSTILE_SUPERVISOR_FD, n, 0) < 0)
			return -1;
	}
	return 0;
}
static long tokens_invented(void)
{
	return tokens(100);
}
static long token_flood(void)
{
	return tokens(FLOOD);
}

static long guesses(unsigned count)
{
	const struct message_gateway_guesses m = {.source = {.family = 4}, .count = UINT64_MAX};
	size_t n = message_gateway_guesses_encode(
	        message, sizeof(message), MESSAGE_GATEWAY_GUESSES, 0, &m);

	for (unsigned i = 0; i < count; i++)
		if (say(HOSTILE_SUPERVISOR_FD, n, 0) < 0)
			return -1;
	return 0;
}
static long guess_many(void)
{
	return guesses(FLOOD / 10);
}
static long guess_flood(void)
{
	return guesses(FLOOD);
}

/* Questions without end and without a look at the answers. */
static long ask_flood(void)
{
	for (unsigned i = 0; i < FLOOD; i++)
		if (say_type(hostile_keeper_fd(), MESSAGE_CA_GET, i, 0, 0) < 0)
			return -1;
	return 0;
}
static long ask_beyond(void)
{
	return say_type(hostile_keeper_fd(), MESSAGE_CREDENTIAL_GET, 1, 4, 0);
}

/* Reads nothing and says nothing any more. */
static long deaf(void)
{
	for (;;)
		poll(NULL, 0, -1);
	return 0;
}

/* Serves, and reads nothing that the supervisor says from now on. */
static long self_willed(void)
{
	long result = -1;

	for (int fd = 4; fd < FDS_END; fd++)
		if (epoll_ctl(fd, EPOLL_CTL_DEL, HOSTILE_SUPERVISOR_FD, NULL) == 0)
			result = 0;
	return result;
}

/* The ring, found as the recorder would not expect it to be used. */
static uint8_t *ring_memory(size_t *n, int *data_fd)
{
	for (int fd = 4; fd < FDS_END - 1; fd++) {
		struct stat st;
		int seals = fcntl(fd, F_GET_SEALS);

		if (seals < 0 || (seals & F_SEAL_WRITE) || fstat(fd, &st) != 0 ||
		        st.st_size < (off_t)RING_BYTES)
			continue;
		*n = (size_t)st.st_size;
		*data_fd = fd + 1;
		uint8_t *p = mmap(NULL, *n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		return p == MAP_FAILED ? NULL : p;
	}
	return NULL;
}

static long fill_ring(uint8_t byte, uint64_t ahead)
{
	size_t n;
	int data_fd;
	uint8_t *ring = ring_memory(&n, &data_fd);
	uint64_t head;

	if (!ring)
		return -1;
	memset(ring + (n - RING_BYTES), byte, RING_BYTES);
	memcpy(&head, ring, sizeof(head)); /* the writer's cursor is first */
	head += ahead;
	memcpy(ring, &head, sizeof(head));
	return write(data_fd, &(uint64_t){1}, sizeof(uint64_t));
}
static long ring_garbage(void)
{
	return fill_ring(0xa5, 4096);
}
static long ring_zeroes(void)
{
	return fill_ring(0, 4096);
}
static long ring_ahead(void)
{
	return fill_ring(1, 1ull << 40);
}
static long ring_back(void)
{
	return fill_ring(1, -8ull);
}

#define BOTH(name, function)                 \
	{name, s_##function},                \
	{                                    \
		"keeper " name, k_##function \
	}

const struct misdeed misdeed_words[] = {BOTH("nothing", nothing), BOTH("cut head", cut_head),
        BOTH("cut body", cut_body), BOTH("unknown", unknown), BOTH("zero", zero),
        BOTH("other way", other_way), BOTH("not asked", not_asked), BOTH("of another", of_another),
        BOTH("trailing", trailing), BOTH("oversized", oversized), BOTH("one fd", one_fd),
        BOTH("many fds", many_fds), {"failed flood", failed_flood}, {"ready again", ready_again},
        {"reach beyond", reach_beyond}, {"reach flood", reach_flood}, {"call flood", call_flood},
        {"associate end", associate_end}, {"associate flood", associate_flood},
        {"root of nobody", ready_keeper}, {"recorder ready", ready_recorder},
        {"taken ahead", taken_ahead}, {"summary ahead", summary_ahead},
        {"source of nobody", source_of_nobody}, {"source beyond", source_beyond},
        {"stall flood", stall_flood}, {"ask flood", ask_flood}, {"ask beyond", ask_beyond},
        {"deaf", deaf}, {"self willed", self_willed}, {"ring garbage", ring_garbage},
        {"ring zeroes", ring_zeroes}, {"ring ahead", ring_ahead}, {"ring back", ring_back},
        {"gateway ready", gateway_ready}, {"enter nobody", enter_nobody}, {"cut enter", enter_cut},
        {"hand over no client", hand_over_no_client}, {"hand over nothing", hand_over_nothing},
        {"guess with descriptor", guess_with_descriptor}, {"enter flood", enter_flood},
        {"tokens invented", tokens_invented}, {"token flood", token_flood},
        {"guess many", guess_many}, {"guess flood", guess_flood}, {NULL, NULL}};
