// Upper bounds of histogram buckets.

/**
 * Durations of calls in seconds: the buckets of the OpenTelemetry conventions for MCP, and finer ones below 10 ms for local
 * tools.
 */
export const CALL_BUCKETS = [
  0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300,
]

/** Seconds that a session lives: to a day. Those of the conventions end after five minutes, when most sessions still live. */
const SESSION_BUCKETS = [1, 10, 60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400]

const SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60]
const BYTES = [256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216]

/** Of a figure, by its name: its unit is at the end. */
export function bucketsFor(name: string): readonly number[] {
  if (name === 'mcp_server_session_duration_seconds') return SESSION_BUCKETS
  return name.endsWith('_bytes') ? BYTES : SECONDS
}
