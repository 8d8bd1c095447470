// The table of clients for `mcp-host connect`: configuration file, format and capabilities.
import { join, posix, win32 } from 'node:path'
import { shellWord } from '../text.ts'

export type Reached = { readonly url: string } | { readonly command: string; readonly args: readonly string[] }

export interface Machine {
  readonly platform: NodeJS.Platform
  readonly home: string
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

export interface ClientRow {
  readonly title: string
  /** True: connects to URLs and logs in itself. False: requires `mcp-host proxy`. */
  readonly remote: boolean
  readonly config?: {
    /** Undefined: the user adds the entry. */
    file?(machine: Machine): string
    readonly key: 'mcpServers' | 'servers' | 'context_servers' | 'mcp'
    readonly inProject?: true
    entry(reached: Reached): object
  }
  command?(name: string, reached: Reached): readonly string[]
  readonly next: string
}

const isUrl = (reached: Reached): reached is { readonly url: string } => 'url' in reached

const withType = (reached: Reached): object => ({ type: isUrl(reached) ? 'http' : 'stdio', ...reached })

const asIs = (reached: Reached): object => reached

/** Entries with another name for the URL. */
const urlAs =
  (key: string, more: object = {}) =>
  (reached: Reached): object =>
    isUrl(reached) ? { ...more, [key]: reached.url } : reached

const appFolder = ({ platform, home, env }: Machine, name: string): string =>
  platform === 'win32'
    ? win32.join(env['APPDATA'] ?? win32.join(home, 'AppData', 'Roaming'), name)
    : join(env['XDG_CONFIG_HOME'] || join(home, '.config'), name)

const desktopFolder = (machine: Machine): string =>
  machine.platform === 'darwin'
    ? posix.join(machine.home, 'Library/Application Support/Claude')
    : appFolder(machine, 'Claude')

export const CLIENTS = {
  'claude-code': {
    title: 'Claude Code',
    remote: true,
    config: { file: ({ cwd }) => join(cwd, '.mcp.json'), key: 'mcpServers', inProject: true, entry: withType },
    command: (name, reached) =>
      isUrl(reached)
        ? ['claude', 'mcp', 'add', '--transport', 'http', name, reached.url]
        : ['claude', 'mcp', 'add', name, '--', reached.command, ...reached.args],
    next: 'In Claude Code, /mcp shows it, and logs in if required.',
  },
  'claude-desktop': {
    title: 'Claude Desktop',
    remote: false,
    config: {
      file: machine => join(desktopFolder(machine), 'claude_desktop_config.json'),
      key: 'mcpServers',
      entry: asIs,
    },
    next: 'Quit Claude Desktop and start it again.',
  },
  cursor: {
    title: 'Cursor',
    remote: true,
    config: { file: ({ home }) => join(home, '.cursor', 'mcp.json'), key: 'mcpServers', entry: asIs },
    next: 'In Cursor, Settings > MCP shows it, and logs in if required.',
  },
  vscode: {
    title: 'VS Code',
    remote: true,
    config: { file: ({ cwd }) => join(cwd, '.vscode', 'mcp.json'), key: 'servers', inProject: true, entry: withType },
    next: 'In VS Code, "MCP: List Servers" starts it, and logs in if required.',
  },
  codex: {
    title: 'Codex CLI',
    remote: true,
    command: (name, reached) =>
      isUrl(reached)
        ? ['codex', 'mcp', 'add', name, '--url', reached.url]
        : ['codex', 'mcp', 'add', name, '--', reached.command, ...reached.args],
    next: 'In Codex, /mcp shows it. `codex mcp login NAME` logs in.',
  },
  'gemini-cli': {
    title: 'Gemini CLI',
    remote: true,
    config: {
      file: ({ home }) => join(home, '.gemini', 'settings.json'),
      key: 'mcpServers',
      entry: urlAs('httpUrl'),
    },
    command: (name, reached) =>
      isUrl(reached)
        ? ['gemini', 'mcp', 'add', '--scope', 'user', '--transport', 'http', name, reached.url]
        : ['gemini', 'mcp', 'add', '--scope', 'user', name, reached.command, ...reached.args],
    next: 'In Gemini CLI, /mcp shows it. `/mcp auth NAME` logs in.',
  },
  windsurf: {
    title: 'Windsurf',
    remote: true,
    config: {
      file: ({ home }) => join(home, '.codeium', 'windsurf', 'mcp_config.json'),
      key: 'mcpServers',
      entry: urlAs('serverUrl'),
    },
    next: 'In Windsurf, refresh the MCP servers of Cascade.',
  },
  zed: {
    title: 'Zed',
    remote: true,
    config: {
      file: machine => join(appFolder(machine, machine.platform === 'win32' ? 'Zed' : 'zed'), 'settings.json'),
      key: 'context_servers',
      entry: asIs,
    },
    next: 'In Zed, Settings > AI > MCP Servers shows it, and logs in if required.',
  },
  junie: {
    title: 'JetBrains Junie',
    remote: false,
    config: {
      file: ({ cwd }) => join(cwd, '.junie', 'mcp', 'mcp.json'),
      key: 'mcpServers',
      inProject: true,
      entry: asIs,
    },
    next: 'In the IDE, Settings > Tools > Junie > MCP Settings shows it.',
  },
  cline: {
    title: 'Cline',
    remote: true,
    config: {
      file: ({ home, env }) =>
        env['CLINE_MCP_SETTINGS_PATH'] || join(home, '.cline', 'data', 'settings', 'cline_mcp_settings.json'),
      key: 'mcpServers',
      entry: urlAs('url', { type: 'streamableHttp' }),
    },
    next: 'The file is that of the Cline CLI. In an editor, copy the entry to MCP Servers > Configure.',
  },
  goose: {
    title: 'Goose',
    remote: true,
    command: (_name, reached) =>
      isUrl(reached)
        ? ['goose', 'session', '--with-streamable-http-extension', reached.url]
        : ['goose', 'session', '--with-extension', [reached.command, ...reached.args].map(shellWord).join(' ')],
    next: 'The command starts a session with the server. `goose configure` adds it permanently.',
  },
  'lm-studio': {
    title: 'LM Studio',
    remote: true,
    config: { file: ({ home }) => join(home, '.lmstudio', 'mcp.json'), key: 'mcpServers', entry: asIs },
    next: 'In LM Studio, Program > Integrations shows it.',
  },
  opencode: {
    title: 'opencode',
    remote: true,
    config: {
      file: ({ cwd }) => join(cwd, 'opencode.json'),
      key: 'mcp',
      inProject: true,
      entry: reached =>
        isUrl(reached)
          ? { type: 'remote', url: reached.url, enabled: true }
          : { type: 'local', command: [reached.command, ...reached.args], enabled: true },
    },
    next: 'Start opencode again. `opencode mcp auth NAME` logs in.',
  },
  inspector: {
    title: 'MCP Inspector',
    remote: true,
    command: (_name, reached) => [
      'npx',
      '-y',
      '@modelcontextprotocol/inspector',
      ...(isUrl(reached)
        ? ['--transport', 'http', '--server-url', reached.url]
        : ['--', reached.command, ...reached.args]),
    ],
    next: 'It opens a page in the browser; select "Connect".',
  },
  json: {
    title: 'other clients',
    remote: true,
    config: { key: 'mcpServers', entry: withType },
    next: 'Add the entry to the settings of the client.',
  },
} as const satisfies Readonly<Record<string, ClientRow>>

export type ClientName = keyof typeof CLIENTS
