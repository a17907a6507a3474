--- a/LoginForm.jsx
+++ b/LoginForm.jsx
@@ -1,3 +1,4 @@
 import { useState } from 'react';
 import { useNavigate } from 'react-router-dom';
 
 export default function LoginForm({ onLogin, busy = false, ...rest }) {
   const [values, setValues] = useState({ email: '', password: '' });
   const [message, setMessage] = useState('');
+  const navigate = useNavigate();
