// The metrics that are read here, by their names on the page of the plugin `metrics`; docs/plugins/metrics.md tells them all.

/** Histogram, seconds, of `mcp_method_name`, `gen_ai_tool_name`, `route`, `outcome`, `error_type`, `mcp_protocol_version`. */
export const CALLS = 'mcp_server_operation_duration_seconds'
/** HTTP requests that became no call: `route`, `verb`, `status`, `outcome`. */
export const PLAIN_REQUESTS = 'mcp_host_http_requests_total'
/** `route`, `mcp_method_name`, `verb`, `status`, `error_type`, `refused_by`. */
export const REFUSALS = 'mcp_host_refusals_total'
/** `client`, `version`, `protocol_version`, `transport`. */
export const CLIENT_CALLS = 'mcp_host_client_calls_total'
/** `client`, `version`, `protocol_version`, `kind`. */
export const QUESTIONS = 'mcp_host_client_questions_total'
/** `route`, `protocol_version`, `transport`. */
export const SESSIONS_NOW = 'mcp_host_sessions'
export const IN_FLIGHT = 'mcp_host_requests_in_flight'
export const STREAMS = 'mcp_host_streams'
export const WAITING_BYTES = 'mcp_host_waiting_bytes'
/** 1 or 0, of `redis`. */
export const REDIS_UP = 'mcp_host_redis_up'
/** Histogram, seconds, of `redis`, `outcome`. */
export const REDIS_TIME = 'mcp_host_redis_duration_seconds'
/** As prom-client names what it reads of the process: seconds, bytes, seconds since the epoch. */
export const LAG = ['nodejs_eventloop_lag_p99_seconds', 'nodejs_eventloop_lag_seconds'] as const
export const MEMORY = 'process_resident_memory_bytes'
export const STARTED = 'process_start_time_seconds'
