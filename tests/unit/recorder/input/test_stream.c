/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of a recorder's sandboxes, where there is no memory for one more. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "no_memory.h"
#include "recorder/recorder.h"

#define SANDBOXES 40 /* the table grows on the way */

static struct recorder recorder;

static int open_stream(uint64_t id)
{
	const struct message_recorder_sandbox m = {.sandbox_id = id,
	        .sandbox = SLICE("agent-7"),
	        .policy = SLICE("coding-agent"),
	        .fingerprint = SLICE("0123456789abcdef")};

	return stream_open(&recorder, &m, -1);
}

static void one_finds_no_room_and_the_others_stay(void **state)
{
	unsigned nth = 0, refused;

	(void)state;
	do {
		no_memory_at(++nth);
		refused = 0;
		for (uint64_t id = 1; id <= SANDBOXES; id++) {
			int rc = open_stream(id);

			assert_true(rc == 0 || rc == -ENOMEM);
			assert_int_equal(stream_find(&recorder, id) != NULL, rc == 0);
			refused += rc != 0;
		}
		assert_int_equal(refused, no_memory_met());
		assert_int_equal(recorder.stream_count, SANDBOXES - refused);
		for (uint64_t id = 1; id <= SANDBOXES; id++)
			if (stream_find(&recorder, id))
				stream_close(stream_find(&recorder, id));
		assert_null(recorder.by_id);
		assert_null(recorder.streams);
		assert_null(recorder.awake);
	} while (refused);
	assert_true(nth > SANDBOXES); /* each stream, the table, its buckets */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(one_finds_no_room_and_the_others_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
