/* SPDX-License-Identifier: Apache-2.0 */
/* clock: the clocks, as plain integers. */
#ifndef VETHGUARD_BASE_CLOCK_H
#define VETHGUARD_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC, for durations and deadlines. */
int64_t clock_monotonic_ms(void);
int64_t clock_monotonic_us(void);
/* CLOCK_BOOTTIME, which keeps counting while the machine sleeps. */
int64_t clock_boot_ms(void);
/* CLOCK_REALTIME since the epoch, for records. */
int64_t clock_real_ms(void);

#endif
