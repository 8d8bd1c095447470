// Data of the API for a component: loaded at once, then again at an interval while the tab is visible.
import { useEffect, useState } from 'preact/hooks'
import { isVisible } from './clock.ts'
import { errorText, request } from './request.ts'

export interface Resource<T> {
  readonly data: T | undefined
  /** The error of the last request. Earlier data stays. */
  readonly error: string | undefined
  /** Time of the last successful request. */
  readonly at: number | undefined
  readonly reload: () => void
}

interface Settings {
  /** Seconds between two requests. Default: loaded once. */
  readonly every?: number
}

interface State<T> {
  readonly path?: string | undefined
  readonly data?: T
  readonly error?: string
  readonly at?: number
}

/** `path` undefined: nothing to load. Data of another path is never shown. */
export function useResource<T>(path: string | undefined, { every }: Settings = {}): Resource<T> {
  const [state, setState] = useState<State<T>>({})
  const [attempt, setAttempt] = useState(0)
  const visible = isVisible.value
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new attempt loads again.
  useEffect(() => {
    if (path === undefined || !visible) return
    let isOver = false
    let timer = 0
    async function load(url: string) {
      try {
        const data = await request<T>(url)
        if (!isOver) setState({ path, data, at: Date.now() })
      } catch (error) {
        if (!isOver) setState(old => ({ ...(old.path === path ? old : {}), path, error: errorText(error) }))
      }
      if (!isOver && every !== undefined) timer = window.setTimeout(load, every * 1_000, url)
    }
    void load(path)
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [path, every, visible, attempt])
  const own = state.path === path ? state : {}
  return { data: own.data, error: own.error, at: own.at, reload: () => setAttempt(attempt + 1) }
}
