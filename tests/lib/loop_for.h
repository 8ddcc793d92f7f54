/* SPDX-License-Identifier: Apache-2.0 */
/* loop_for: lets a loop run for a while. Included after cmocka.h. */
#ifndef VETHGUARD_TESTS_LIB_LOOP_FOR_H
#define VETHGUARD_TESTS_LIB_LOOP_FOR_H

#include "vethguard/base/list.h"
#include "vethguard/loop/loop.h"

struct loop_for {
	struct loop_timer timer;
	struct loop *loop;
};

static inline void loop_for_over(struct loop_timer *timer)
{
	loop_stop(container_of(timer, struct loop_for, timer)->loop);
}

static inline void loop_for(struct loop *loop, int64_t ms)
{
	struct loop_for end = {.loop = loop};

	assert_int_equal(loop_timer_open(loop, &end.timer, loop_for_over), 0);
	loop_timer_set(&end.timer, ms);
	assert_int_equal(loop_run(loop), 0);
	loop_timer_close(&end.timer);
}

#endif
