// What `mcp-host dev` was given, in both of its processes.
import type { CONFIG_OPTION, ENV_FILE_OPTION, LOG_OPTIONS, VerbValues } from '../verb.ts'

/** Without `--env-file`: `.env` beside the config, where there is one. */
export type DevOptions = VerbValues<typeof CONFIG_OPTION & typeof ENV_FILE_OPTION & typeof LOG_OPTIONS>
