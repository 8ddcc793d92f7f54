/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's entries in the supervisor's registries, without memory for them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/resource.h>

#include "no_memory.h"
#include "supervisor/supervisor.h"

#define ALL 40 /* a registry grows on the way */

static struct supervisor sv;

static int setup(void **state)
{
	(void)state;
	sv.loop = loop_new();
	sv.mounts = -1;
	assert_non_null(sv.loop);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	loop_free(sv.loop);
	return 0;
}

/* Without descriptors none is started with memory either, so that no program has to be there. */
static void a_worker_that_cannot_be_started_is_nowhere(void **state)
{
	struct rlimit before, few;
	bool met = true;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){3, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (unsigned nth = 1; met; nth++) {
		no_memory_at(nth);
		assert_null(instance_new(&sv, slice_of("", 0)));
		met = no_memory_met();
		assert_int_equal(errno, met ? ENOMEM : EMFILE);
		assert_null(sv.instances);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static unsigned asked(const struct instance *all)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ALL; i++) {
		struct instance *found;

		HASH_FIND(by_request, sv.requests, &all[i].keeper_request,
		        sizeof(all[i].keeper_request), found);
		assert_true(!found || found == &all[i]);
		n += found != NULL;
	}
	return n;
}

/* What the keeper answers would never be known. */
static void a_question_that_cannot_be_noted_is_not_asked(void **state)
{
	static struct instance all[ALL];
	unsigned nth = 0, refused;

	(void)state;
	do {
		for (unsigned i = 0; i < ALL; i++)
			all[i] = (struct instance){.supervisor = &sv};
		no_memory_at(++nth);
		refused = 0;
		for (unsigned i = 0; i < ALL; i++)
			refused += instance_asks_keeper(&all[i], nth * ALL + i + 1) == -ENOMEM;
		assert_int_equal(refused, no_memory_met());
		assert_int_equal(asked(all), ALL - refused);
		for (unsigned i = 0; i < ALL; i++) /* again, all of them */
			assert_int_equal(
			        instance_asks_keeper(&all[i], (nth + 1000) * ALL + i + 1), 0);
		assert_int_equal(asked(all), ALL);
		for (unsigned i = 0; i < ALL; i++)
			HASH_DELETE(by_request, sv.requests, &all[i]);
		assert_null(sv.requests);
	} while (refused);
	assert_true(nth > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_worker_that_cannot_be_started_is_nowhere),
	        cmocka_unit_test(a_question_that_cannot_be_noted_is_not_asked),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
