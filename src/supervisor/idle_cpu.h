/* SPDX-License-Identifier: Apache-2.0 */
/* idle_cpu: whether a worker that is about to be told of its sandbox has a CPU to itself. */
#ifndef SUPERVISOR_IDLE_CPU_H
#define SUPERVISOR_IDLE_CPU_H

#include <stdint.h>

/* The CPU that this program runs on, if nothing else on the machine runs just now, so that every
 * other one idles; else MESSAGE_CPU_ANY. */
uint16_t idle_cpu_beside(void);

#endif
