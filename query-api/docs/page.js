/** Starts Swagger UI. A token in the fragment reaches no server, leaves the address bar and is not stored. */
const token = new URLSearchParams(location.hash.slice(1)).get('token');
if (token !== null) history.replaceState(null, '', location.pathname);

const choice = document.querySelector('#document');
const tokenState = document.querySelector('#token');

/** What Swagger UI leaves out for readers who hear the page or have no mouse. */
const MISSING = [
  ['.information-container', 'role', 'region'],
  ['.information-container', 'aria-label', 'About this API'],
  ['.opblock-tag, .models > h4', 'aria-level', '2'],
  ['#swagger-ui h4', 'aria-level', '3'],
  ['#swagger-ui h5', 'aria-level', '4'],
  ['#swagger-ui select', 'aria-label', 'Choice'],
  ['#swagger-ui :is(input, textarea)', 'aria-label', 'Value'],
  ['.microlight', 'tabindex', '0'],
];
new MutationObserver(() => {
  for (const [elements, name, value] of MISSING)
    for (const one of document.querySelectorAll(`:is(${elements}):not([${name}])`))
      one.setAttribute(name, value);
}).observe(document.querySelector('#swagger-ui'), { childList: true, subtree: true });

const show = (url) => {
  const ui = window.SwaggerUIBundle({
    url,
    dom_id: '#swagger-ui',
    validatorUrl: null,
    // The numbers of each of its themes are too dark to read.
    syntaxHighlight: false,
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    tryItOutEnabled: true,
    onComplete: () => {
      if (token === null) return;
      ui.preauthorizeApiKey('bearer', token);
      tokenState.textContent = 'Token filled in';
    },
  });
};

tokenState.textContent = token === null ? 'With a token: npx payments docs' : '';
choice.addEventListener('change', () => show(choice.value));
show(choice.value);
