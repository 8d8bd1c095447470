// Sanitizes icons and `_meta` of a server.
import { isObject } from '../../core/plugin.ts'

/** Returns the `_meta` fields to pass on: fields that belong to a connection are removed. */
export function passedMeta(meta: unknown, setting: 'pass' | 'drop'): Record<string, unknown> | undefined {
  if (setting === 'drop' || !isObject(meta)) return undefined
  let passed: Record<string, unknown> | undefined
  for (const [key, value] of Object.entries(meta)) {
    if (key.startsWith('io.modelcontextprotocol/') || key === 'progressToken') continue
    passed ??= {}
    passed[key] = value
  }
  return passed
}

/** Returns icons that do not make clients load files from other origins; none above `max` characters. */
export function safeIcons(icons: unknown, origin: string | undefined, max: number): unknown[] | undefined {
  if (!Array.isArray(icons)) return undefined
  const safe = (icons as unknown[]).filter(icon => {
    const src = isObject(icon) ? icon['src'] : undefined
    if (typeof src !== 'string') return false
    return src.startsWith('data:image/') || (src.startsWith('https://') && new URL(src).origin === origin)
  })
  return safe.length === 0 || JSON.stringify(safe).length > max ? undefined : safe
}
