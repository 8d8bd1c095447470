// The search of the header: `/` focuses it. It finds routes, tools, calls, upstream servers and warnings.
import { useEffect, useRef, useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { PATHS, type Reply, type SearchHit, type SearchResults } from '../api.ts'
import { urlOf } from './data/query.ts'
import { request } from './data/request.ts'
import { Text } from './parts/text.tsx'

/** Milliseconds after the last key. */
const DELAY = 150

const KINDS: Readonly<Record<SearchHit['kind'], string>> = {
  route: 'Route',
  tools: 'Tool',
  resources: 'Resource',
  prompts: 'Prompt',
  call: 'Call',
  warning: 'Warning',
  upstream: 'Upstream server',
}

function targetOf({ kind, path, name, seq, node }: SearchHit): string {
  if (kind === 'route') return urlOf('/routes', { route: path })
  if (kind === 'call') return urlOf('/calls', { seq: seq === undefined ? undefined : String(seq), from: node })
  if (kind === 'warning') return '/'
  if (kind === 'upstream') return urlOf('/upstreams', { server: name })
  return urlOf('/tools', { path, kind, name })
}

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

export function Search() {
  const field = useRef<HTMLInputElement>(null)
  const [text, setText] = useState('')
  const [hits, setHits] = useState<readonly SearchHit[]>()
  const [active, setActive] = useState(0)
  const [, navigate] = useLocation()

  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const isFree = !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target)
      if (event.key !== '/' || !isFree || document.querySelector('dialog[open]')) return
      event.preventDefault()
      field.current?.focus()
    }
    document.addEventListener('keydown', pressed)
    return () => document.removeEventListener('keydown', pressed)
  }, [])

  useEffect(() => {
    const query = text.trim()
    if (query === '') return setHits(undefined)
    let isOver = false
    const timer = setTimeout(async () => {
      const found = await request<Reply<SearchResults>>(urlOf(PATHS.search, { q: query })).catch(() => undefined)
      if (isOver) return
      setHits(found?.available ? found.hits : [])
      setActive(0)
    }, DELAY)
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [text])

  function open(hit: SearchHit) {
    setText('')
    setHits(undefined)
    field.current?.blur()
    navigate(targetOf(hit))
  }

  function pressed(event: KeyboardEvent) {
    const last = (hits?.length ?? 0) - 1
    const hit = hits?.[active]
    if (event.key === 'ArrowDown') setActive(Math.min(last, active + 1))
    else if (event.key === 'ArrowUp') setActive(Math.max(0, active - 1))
    else if (event.key === 'Enter' && hit) open(hit)
    else if (event.key === 'Escape') {
      setText('')
      field.current?.blur()
    } else return
    event.preventDefault()
  }

  return (
    <search class="search">
      <input
        ref={field}
        type="search"
        role="combobox"
        aria-label="Search"
        aria-expanded={hits !== undefined}
        aria-controls="search-results"
        aria-activedescendant={hits?.[active] ? `hit-${active}` : undefined}
        placeholder="Search tools, routes, request IDs ( / )"
        autocomplete="off"
        value={text}
        onInput={event => setText(event.currentTarget.value)}
        onKeyDown={pressed}
        onBlur={() => setHits(undefined)}
      />
      {hits && hits.length === 0 && (
        <div class="results" id="search-results" role="status">
          <p class="blank">Nothing found.</p>
        </div>
      )}
      {hits && hits.length > 0 && (
        <div class="results" id="search-results" role="listbox" aria-label="Search results">
          {hits.map((hit, index) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are handled by the combobox.
            // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the combobox.
            <div
              key={targetOf(hit)}
              id={`hit-${index}`}
              role="option"
              aria-selected={index === active}
              onMouseDown={event => event.preventDefault()}
              onClick={() => open(hit)}
            >
              <span class="kind muted small">{KINDS[hit.kind]}</span>
              <span class="wrap">
                <Text value={hit.title} most={120} />
                {hit.text !== undefined && (
                  <span class="muted small">
                    {' '}
                    <Text value={hit.text} most={120} />
                  </span>
                )}
              </span>
            </div>
          ))}
        </div>
      )}
    </search>
  )
}
