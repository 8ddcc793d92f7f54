/* SPDX-License-Identifier: Apache-2.0 */
/* The CAs of the real keeper program: its file in both formats, changes that hold and that do not,
 * and who signs for whom. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "keeper_fixture.h"
#include "vethguard/tls/ca_papers.h"
#include "vethguard/tls/digest.h"

#define WEEK_S (7 * 24 * 3600)

static struct message_keeper_ca told; /* points into kept */
static uint8_t kept[MESSAGE_BYTES_MAX];
static int state_file = -1;

static int forget_file(void **state)
{
	(void)state;
	if (state_file >= 0)
		close(state_file);
	state_file = -1;
	return 0;
}

static int empty_file(void)
{
	int fd = memfd_create("cas", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void start(struct fixture *f)
{
	if (state_file < 0)
		state_file = empty_file();
	fixture_start_with(f, state_file);
}

static void send_ask(
        struct fixture *f, const struct message_keeper_ca_ask *ask, const int *fds, size_t count)
{
	static uint8_t out[MESSAGE_BYTES_MAX];
	size_t n = message_keeper_ca_ask_encode(
	        out, sizeof(out), MESSAGE_KEEPER_CA_ASK, ++f->last_id, ask);

	assert_true(n > 0);
	assert_int_equal(ipc_send_blocking(f->supervisor, out, n, fds, count), 0);
}

/* Waits for the answer; other messages of the keeper are dropped meanwhile. */
static void hear(const struct fixture *f)
{
	struct ipc_message message;
	struct reader body;

	do
		assert_int_equal(
		        ipc_receive_blocking(f->supervisor, WAIT_MS, fixture_buf, &message), 0);
	while (message.head.type != MESSAGE_KEEPER_CA);
	assert_int_equal(message.head.id, f->last_id);
	memcpy(kept, message.body.p, message.body.left);
	body = reader_over(kept, message.body.left);
	assert_int_equal(message_keeper_ca_decode(&body, &told), 0);
}

static struct message_keeper_ca_ask question(enum message_ca_what what)
{
	return (struct message_keeper_ca_ask){.what = (uint8_t)what,
	        .overlap_s = WEEK_S,
	        .problem = SLICE(""),
	        .name = SLICE("node"),
	        .certificate = SLICE(""),
	        .root = SLICE("")};
}

static void keep(struct fixture *f, int next)
{
	uint8_t out[64];

	assert_true(told.changed);
	close(state_file);
	state_file = next;
	assert_int_equal(
	        ipc_send_blocking(f->supervisor, out,
	                message_empty(out, sizeof(out), MESSAGE_KEEPER_CA_KEPT, f->last_id), NULL,
	                0),
	        0);
}

/* Asks and, if wanted and something changed, keeps the file. */
static void ask_with(struct fixture *f, const struct message_keeper_ca_ask *ask, const int *more,
        size_t count, bool keeps)
{
	int fds[4] = {empty_file()};

	for (size_t i = 0; i < count; i++)
		fds[1 + i] = more[i];
	send_ask(f, ask, fds, 1 + count);
	hear(f);
	for (size_t i = 0; i < count; i++)
		close(more[i]);
	if (told.changed && keeps)
		keep(f, fds[0]);
	else
		close(fds[0]);
}

static void ask(struct fixture *f, enum message_ca_what what)
{
	const struct message_keeper_ca_ask q = question(what);

	ask_with(f, &q, NULL, 0, true);
}

static void ask_view(struct fixture *f)
{
	const struct message_keeper_ca_ask q = question(MESSAGE_CA_LOOK);

	send_ask(f, &q, NULL, 0);
	hear(f);
}

static void fingerprint_of(size_t i, uint8_t out[MESSAGE_FINGERPRINT_BYTES])
{
	assert_true(i < told.count);
	memcpy(out, told.cas[i].root.p, MESSAGE_FINGERPRINT_BYTES);
}

/* A worker whose sandbox knows that root; its end of the pair. */
static int worker_knowing(struct fixture *f, uint64_t id, const uint8_t *root)
{
	const struct message_keeper_worker m = {.root = slice_of(root, MESSAGE_FINGERPRINT_BYTES)};
	uint8_t out[128];
	int pair[2];

	assert_int_equal(ipc_pair(pair), 0);
	assert_int_equal(ipc_send_blocking(f->supervisor, out,
	                         message_keeper_worker_encode(
	                                 out, sizeof(out), MESSAGE_KEEPER_WORKER, id, &m),
	                         &pair[1], 1),
	        0);
	close(pair[1]);
	return pair[0];
}

static void expect_ca(int worker, const uint8_t root[MESSAGE_FINGERPRINT_BYTES])
{
	struct ca_description d;
	struct ipc_message message;
	struct message_ca ca;

	fixture_expect(worker, MESSAGE_CA, &message);
	assert_int_equal(message.head.id, 1);
	assert_int_equal(message_ca_decode(&message.body, &ca), 0);
	assert_int_equal(ca_describe(ca.root, &d), 0);
	assert_memory_equal(d.fingerprint, root, MESSAGE_FINGERPRINT_BYTES);
}

static void ask_ca(int worker)
{
	uint8_t out[64];

	assert_int_equal(ipc_send_blocking(worker, out,
	                         message_empty(out, sizeof(out), MESSAGE_CA_GET, 1), NULL, 0),
	        0);
}

static void test_first_format(void **state)
{
	uint8_t first[MESSAGE_FINGERPRINT_BYTES];
	char magic[8];
	struct fixture f;

	(void)state;
	start(&f);
	ask(&f, MESSAGE_CA_CHECK);
	assert_false(told.changed);
	assert_false(told.unusable);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.cas[0].origin, MESSAGE_CA_OWN);
	fingerprint_of(0, first);
	assert_int_equal(fixture_end(&f), 0);
	assert_int_equal(pread(state_file, magic, 8, 0), 8);
	assert_memory_equal(magic, "vgroot1\n", 8); /* what versions before this one read */
	start(&f);
	ask_view(&f);
	assert_memory_equal(told.cas[0].root.p, first, sizeof(first));
	assert_int_equal(fixture_end(&f), 0);
}

static void test_rotation(void **state)
{
	static const uint8_t oldest[MESSAGE_FINGERPRINT_BYTES];
	uint8_t first[MESSAGE_FINGERPRINT_BYTES], second[MESSAGE_FINGERPRINT_BYTES];
	struct fixture f;

	(void)state;
	start(&f);
	ask_view(&f);
	fingerprint_of(0, first);
	int spare = fixture_worker(&f, 1), old = fixture_sandbox(&f, 2, 0, 0, 0);
	ask_ca(spare);
	expect_ca(spare, first);
	ask_ca(old);
	expect_ca(old, first);
	ask(&f, MESSAGE_CA_ROTATE);
	ask_view(&f);
	assert_int_equal(told.count, 2);
	fingerprint_of(0, second);
	assert_memory_not_equal(first, second, sizeof(first));
	assert_memory_equal(told.cas[1].root.p, first, sizeof(first));
	assert_true(told.cas[1].retires_s > 0 && told.cas[0].retires_s == 0);
	expect_ca(spare, second); /* nobody knows it yet */
	fixture_expect_silence(old);
	for (int again = 0; again < 2; again++) { /* and after the keeper's end */
		int knows = worker_knowing(&f, 10, first), fresh = fixture_worker(&f, 11),
		    unsaid = worker_knowing(&f, 12, oldest),
		    strange = worker_knowing(
		            &f, 13, (const uint8_t *)"0123456789abcdef0123456789abcdef");

		ask_ca(knows);
		expect_ca(knows, first);
		ask_ca(fresh);
		expect_ca(fresh, second);
		ask_ca(unsaid);
		expect_ca(unsaid, first);
		ask_ca(strange);
		expect_ca(strange, second);
		close(knows);
		close(fresh);
		close(unsaid);
		close(strange);
		assert_int_equal(fixture_end(&f), 0);
		start(&f);
		ask(&f, MESSAGE_CA_CHECK);
		assert_int_equal(told.count, 2);
	}
	assert_int_equal(fixture_end(&f), 0);
	close(spare);
	close(old);
}

static void test_end_of_an_overlap(void **state)
{
	struct message_keeper_ca_ask q = question(MESSAGE_CA_ROTATE);
	uint8_t first[MESSAGE_FINGERPRINT_BYTES], second[MESSAGE_FINGERPRINT_BYTES];
	struct fixture f;

	(void)state;
	start(&f);
	ask_view(&f);
	fingerprint_of(0, first);
	int old = fixture_sandbox(&f, 2, 0, 0, 0);
	ask_ca(old);
	expect_ca(old, first);
	q.overlap_s = 0; /* over at once */
	ask_with(&f, &q, NULL, 0, true);
	fingerprint_of(0, second);
	fixture_expect_silence(old);
	ask(&f, MESSAGE_CA_CHECK);
	assert_true(told.changed);
	assert_int_equal(told.count, 1);
	expect_ca(old, second); /* without being asked */
	struct ipc_message message;
	struct message_keeper_root root;
	fixture_expect(f.supervisor, MESSAGE_KEEPER_ROOT, &message);
	assert_int_equal(message.head.id, 2);
	assert_int_equal(message_keeper_root_decode(&message.body, &root), 0);
	assert_memory_equal(root.root.p, second, sizeof(second));
	assert_int_equal(fixture_end(&f), 0);
	close(old);
}

/* Without KEPT nothing has changed, whichever way the keeper ends. */
static void test_not_kept(void **state)
{
	const struct message_keeper_ca_ask q = question(MESSAGE_CA_ROTATE);
	uint8_t first[MESSAGE_FINGERPRINT_BYTES];
	struct fixture f;

	(void)state;
	start(&f);
	ask_view(&f);
	fingerprint_of(0, first);
	ask_with(&f, &q, NULL, 0, false);
	assert_int_equal(told.count, 2);
	int worker = fixture_worker(&f, 1);
	ask_ca(worker);
	expect_ca(worker, first);
	ask_view(&f);
	assert_int_equal(told.count, 1);
	uint8_t out[64]; /* too late */
	assert_int_equal(
	        ipc_send_blocking(f.supervisor, out,
	                message_empty(out, sizeof(out), MESSAGE_KEEPER_CA_KEPT, f.last_id - 1),
	                NULL, 0),
	        0);
	ask_view(&f);
	assert_int_equal(told.count, 1);
	kill(f.pid, SIGKILL);
	fixture_end(&f);
	start(&f);
	ask_view(&f);
	assert_int_equal(told.count, 1);
	assert_memory_equal(told.cas[0].root.p, first, sizeof(first));
	assert_int_equal(fixture_end(&f), 0);
	close(worker);
}

static void test_bounds(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	for (int i = 1; i < MESSAGE_CAS_MAX; i++) {
		ask(&f, MESSAGE_CA_ROTATE);
		assert_int_equal(told.error.n, 0);
	}
	ask(&f, MESSAGE_CA_ROTATE);
	assert_true(told.error.n > 0 && !told.changed);
	assert_int_equal(told.count, MESSAGE_CAS_MAX);
	assert_int_equal(fixture_end(&f), 0);
	start(&f); /* the largest file is read again */
	ask_view(&f);
	assert_int_equal(told.count, MESSAGE_CAS_MAX);
	assert_int_equal(fixture_end(&f), 0);
}

static void test_request_outlives_the_keeper(void **state)
{
	char first[2048];
	struct fixture f;

	(void)state;
	start(&f);
	ask(&f, MESSAGE_CA_REQUEST);
	snprintf(first, sizeof(first), "%.*s", (int)told.request.n, told.request.p);
	assert_non_null(strstr(first, "BEGIN CERTIFICATE REQUEST"));
	assert_int_equal(fixture_end(&f), 0);
	start(&f);
	ask_view(&f);
	assert_true(slice_equals(told.request, slice_from_string(first)));
	struct message_keeper_ca_ask q = question(MESSAGE_CA_INSTALL);
	q.certificate = SLICE("nothing");
	ask_with(&f, &q, NULL, 0, true);
	assert_true(told.error.n > 0 && !told.changed);
	assert_true(slice_equals(told.request, slice_from_string(first)));
	ask(&f, MESSAGE_CA_REQUEST); /* makes that void */
	assert_false(slice_equals(told.request, slice_from_string(first)));
	assert_int_equal(fixture_end(&f), 0);
}

/* Writes a file of the first format with a root of so many days. */
static int file_with_root(unsigned days)
{
	struct ca *root = ca_new_root(SLICE("vethguard sandbox CA old"), days);
	uint8_t file[4096], sum[DIGEST_SHA256_BYTES];
	struct writer w = writer_over(file, sizeof(file));
	struct digest digest;
	struct secret key;
	struct slice text;
	int fd = empty_file();

	assert_int_equal(ca_key_der(root, &key), 0);
	writer_bytes(&w, "vgroot1\n", 8);
	writer_vector(&w, 2, ca_certificate_der(root));
	writer_vector(&w, 2, secret_slice(&key));
	text = slice_of(file, w.len);
	assert_int_equal(digest_init(&digest), 0);
	assert_int_equal(digest_sha256(&digest, &text, 1, sum), 0);
	digest_fini(&digest);
	writer_bytes(&w, sum, sizeof(sum));
	assert_int_equal(pwrite(fd, file, w.len, 0), (ssize_t)w.len);
	secret_free(&key);
	ca_free(root);
	return fd;
}

/* A root that has less than a fifth of its time left is replaced by itself, and stays trusted to
 * its end. */
static void test_renewed_by_itself(void **state)
{
	struct fixture f;

	(void)state;
	state_file = file_with_root(100);
	start(&f);
	ask(&f, MESSAGE_CA_CHECK);
	assert_false(told.changed);
	assert_int_equal(fixture_end(&f), 0);
	close(state_file);
	state_file = file_with_root(5); /* two of its days are over, and it ends in three */
	start(&f);
	ask(&f, MESSAGE_CA_CHECK);
	assert_false(told.changed);
	assert_int_equal(fixture_end(&f), 0);
	close(state_file);
	state_file = file_with_root(2); /* it ends about now */
	start(&f);
	int worker = fixture_worker(&f, 1);
	ask(&f, MESSAGE_CA_CHECK);
	assert_true(told.changed);
	assert_true(told.count >= 1 && told.cas[0].origin == MESSAGE_CA_OWN);
	uint8_t now[MESSAGE_FINGERPRINT_BYTES];
	fingerprint_of(0, now);
	ask_ca(worker);
	expect_ca(worker, now);
	ask(&f, MESSAGE_CA_CHECK);
	assert_false(told.changed);
	assert_int_equal(fixture_end(&f), 0);
	close(worker);
}

/* Files of the configuration that cannot be opened: nothing new is signed, what exists goes on. */
static void test_problem(void **state)
{
	struct message_keeper_ca_ask q = question(MESSAGE_CA_CHECK);
	uint8_t first[MESSAGE_FINGERPRINT_BYTES];
	struct fixture f;

	(void)state;
	start(&f);
	ask(&f, MESSAGE_CA_CHECK); /* sandboxes may know the root from now on */
	fingerprint_of(0, first);
	int spare = fixture_worker(&f, 5);
	ask_ca(spare);
	expect_ca(spare, first);
	q.configured = MESSAGE_CA_ROOT_FILE | MESSAGE_CA_KEY_FILE;
	q.problem = SLICE("ca.key: no such file");
	ask_with(&f, &q, NULL, 0, true);
	assert_true(told.unusable);
	assert_non_null(memmem(told.notes.p, told.notes.n, "no such file", 12));
	int old = worker_knowing(&f, 1, first), fresh = fixture_worker(&f, 2);
	ask_ca(old);
	expect_ca(old, first);
	ask_ca(fresh);
	fixture_expect_silence(fresh);
	fixture_describe(&f, 2, 0, 0, 0);
	struct ipc_message message;
	struct message_text text;
	fixture_expect(f.supervisor, MESSAGE_FAILED, &message);
	assert_int_equal(message_text_decode(&message.body, &text), 0);
	assert_non_null(memmem(text.text.p, text.text.n, "no such file", 12));
	fixture_describe(
	        &f, 5, 0, 0, 0); /* it has a CA, which is not what the configuration wants */
	fixture_expect(f.supervisor, MESSAGE_FAILED, &message);
	ask(&f, MESSAGE_CA_CHECK); /* the configuration names none any more */
	assert_false(told.unusable);
	expect_ca(fresh, first);
	expect_ca(spare, first);
	assert_int_equal(fixture_end(&f), 0);
	close(spare);
	close(old);
	close(fresh);
}

static void test_damaged_second_format(void **state)
{
	uint8_t whole[65536];
	struct fixture f;

	(void)state;
	start(&f);
	ask(&f, MESSAGE_CA_ROTATE);
	ask(&f, MESSAGE_CA_REQUEST);
	assert_int_equal(fixture_end(&f), 0);
	ssize_t n = pread(state_file, whole, sizeof(whole), 0);
	assert_true(n > 1000);
	assert_memory_equal(whole, "vgroot2\n", 8);
	for (ssize_t at = 0; at < n; at += n / 11) {
		int fd = empty_file();
		uint8_t start_message[64];

		whole[at] ^= 1;
		assert_int_equal(pwrite(fd, whole, (size_t)n, 0), n);
		whole[at] ^= 1;
		fixture_spawn(&f);
		assert_int_equal(ipc_send_blocking(f.supervisor, start_message,
		                         message_empty(start_message, sizeof(start_message),
		                                 MESSAGE_KEEPER_START, 1),
		                         &fd, 1),
		        0);
		assert_int_equal(fixture_end(&f), 125);
		close(fd);
	}
}

/* Descriptors that do not fit the question end the keeper, as every breach does. */
static void test_breaches(void **state)
{
	const struct message_keeper_ca_ask questions[] = {
	        question(MESSAGE_CA_CHECK), question(MESSAGE_CA_ROTATE), question(MESSAGE_CA_LOOK)};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct message_keeper_ca_ask q = questions[i % 3];
		int fds[2] = {empty_file(), empty_file()};

		start(&f);
		if (i == 3)
			q.configured = MESSAGE_CA_KEY_FILE; /* a key without a root */
		send_ask(&f, &q, fds, i == 2 || i == 3 ? 1 : i == 0 ? 2 : 0);
		assert_int_equal(fixture_wait(&f), 125);
		close(f.supervisor);
		close(fds[0]);
		close(fds[1]);
	}
}

int main(void)
{
#define ONE(test) cmocka_unit_test_teardown(test, forget_file)
	const struct CMUnitTest tests[] = {
	        ONE(test_first_format),
	        ONE(test_rotation),
	        ONE(test_end_of_an_overlap),
	        ONE(test_not_kept),
	        ONE(test_bounds),
	        ONE(test_request_outlives_the_keeper),
	        ONE(test_renewed_by_itself),
	        ONE(test_problem),
	        ONE(test_damaged_second_format),
	        ONE(test_breaches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
