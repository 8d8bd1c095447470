// One form for all apps that say the same: what they are compared and kept by.
import type { AppDefinition } from '../../core/index.ts'

const inOrder = (_key: string, value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
    : value

export const canonical = (app: AppDefinition): string => JSON.stringify(app, inOrder)
