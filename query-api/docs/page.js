/**
 * Starts Swagger UI. `payments docs` hands over a token in the fragment of the address, which no
 * server ever sees; it leaves the address bar before anything else happens, and is kept nowhere.
 */
const token = new URLSearchParams(location.hash.slice(1)).get('token');
if (token !== null) history.replaceState(null, '', location.pathname);

const choice = document.querySelector('#document');
const said = document.querySelector('#token');

const show = (url) => {
  const ui = window.SwaggerUIBundle({
    url,
    dom_id: '#swagger-ui',
    validatorUrl: null,
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    tryItOutEnabled: true,
    onComplete: () => {
      if (token === null) return;
      ui.preauthorizeApiKey('bearer', token);
      said.textContent = 'Token filled in';
    },
  });
};

said.textContent = token === null ? 'With a token: npx payments docs' : '';
choice.addEventListener('change', () => show(choice.value));
show(choice.value);
