// Access log lines as the plugin writes them, with known content.

export interface LineFields {
  readonly [field: string]: unknown
}

/** A call of a tool that went well, with other fields over it. */
export const callLine = (at: string, fields: LineFields = {}): string =>
  JSON.stringify({
    time: at,
    route: '/mcp',
    method: 'tools/call',
    name: 'say',
    outcome: 'ok',
    ms: 1,
    ip: '10.0.0.7',
    client: 'modern 1.0.0',
    revision: '2026-07-28',
    ...fields,
  })

/** In a session of an old revision. */
export const oldLine = (at: string, client: string, fields: LineFields = {}): string =>
  callLine(at, { client, revision: '2025-06-18', transport: 'transport-streamable', session: '5d2c', ...fields })
